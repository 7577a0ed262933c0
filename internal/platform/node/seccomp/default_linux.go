// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"slices"

	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// Default returns the profile that Docker and containerd give to containers, with one
// change. By theirs, socketcall, which makes sockets for programs of 386, makes sockets of
// all families, also of those that the profile denies to socket: which one is behind a
// pointer. Here it makes none. Such programs have socket since Linux 4.3.
func Default() (*Profile, error) {
	p := usualProfile()
	rules := p.source.Syscalls
	for i := range rules {
		rules[i].Names = slices.DeleteFunc(slices.Clone(rules[i].Names), func(name string) bool { return name == socketcall })
	}
	const makeSocket = 1 // SYS_SOCKET of linux/net.h
	p.source.Syscalls = append(rules, entry{LinuxSyscall: specs.LinuxSyscall{
		Names: []string{socketcall}, Action: specs.ActAllow, Args: []specs.LinuxSeccompArg{{Index: 0, Value: makeSocket, Op: specs.OpNotEqual}},
	}})
	return p, nil
}

const socketcall = "socketcall"

// usualProfile is the profile as Docker and containerd have it.
func usualProfile() *Profile {
	source := seccomp.DefaultProfile()
	p := &Profile{source: document{LinuxSeccomp: source.LinuxSeccomp, ArchMap: source.ArchMap}}
	for _, call := range source.Syscalls {
		p.source.Syscalls = append(p.source.Syscalls, entry{LinuxSyscall: call.LinuxSyscall, Includes: call.Includes, Excludes: call.Excludes})
	}
	return p
}
