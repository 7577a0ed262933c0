// SPDX-License-Identifier: Apache-2.0

package seccomp

import "golang.org/x/sys/unix"

// SockFilter returns the program for struct sock_fprog.
func (p *Program) SockFilter() []unix.SockFilter {
	filter := make([]unix.SockFilter, len(p.instructions))
	for i, in := range p.instructions {
		filter[i] = unix.SockFilter{Code: in.Op, Jt: in.Jt, Jf: in.Jf, K: in.K}
	}
	return filter
}
