// SPDX-License-Identifier: Apache-2.0

package seccomp

import "github.com/moby/profiles/seccomp"

// Default returns the profile that Docker and containerd give to containers.
func Default() (*Profile, error) {
	source := seccomp.DefaultProfile()
	p := &Profile{source: document{LinuxSeccomp: source.LinuxSeccomp, ArchMap: source.ArchMap}}
	for _, call := range source.Syscalls {
		p.source.Syscalls = append(p.source.Syscalls, entry{LinuxSyscall: call.LinuxSyscall, Includes: call.Includes, Excludes: call.Excludes})
	}
	return p, nil
}
