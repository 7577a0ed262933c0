// SPDX-License-Identifier: Apache-2.0

// Package seccomp compiles the seccomp profile of a container to the program that the
// kernel runs before each of its syscalls.
//
// # Model
//
//	securityContext       Select: RuntimeDefault, Localhost, Unconfined
//	  └─ Profile          a file of Docker or OCI, or the default profile; its rules may
//	  │                   be for some machines and capabilities only
//	  └─ LinuxSeccomp     Resolve: the rules for this Machine
//	       └─ Program     Compile: classic BPF, and the flags of seccomp(2)
//
// The parent compiles; what becomes the container only installs bytes, after it has
// set no_new_privs.
//
// # Meaning of a profile
//
// A profile means what it means with runc and libseccomp, so that a container does the
// same on a cluster:
//
//   - Names that an architecture lacks are skipped, and so are rules with the default
//     action.
//   - A rule without conditions decides for its syscall, whatever rules with conditions
//     say. The first one does.
//   - Of the others, the first in the profile whose conditions all hold does. If a rule
//     has several conditions on one argument, each condition is a rule of its own.
//   - Syscalls above the last one that the profile names are unknown to its author. They
//     get ENOSYS, so that libraries do without, unless the default action lets syscalls
//     through.
//   - The machine's architecture is always part of the profile. A syscall of one that is
//     not kills the process.
//
// Where libseccomp leaves the order of rules open, or is of no use on today's machines,
// this package decides:
//
//   - Syscalls of x32 on amd64 get ENOSYS even if the profile lists x32, as from a kernel
//     without x32, which almost all are.
//   - socketcall and ipc on 386 have no rules but those with their names.
//   - SCMP_ACT_NOTIFY is refused: nobody would answer.
//
// # Program
//
//	load the architecture; is it the machine's? one of the others? kill
//	load the number; binary search over ranges of numbers with the same answer
//	  allow, or errno, …
//	  or conditions: load half an argument, compare, …
//
// Instructions before a plain "allow" use only the number and the architecture, so that
// kernels since 5.11 remember the answer and do not run the program for it again.
package seccomp

//go:generate go run ./internal/gen table.go
