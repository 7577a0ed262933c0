// SPDX-License-Identifier: Apache-2.0

// Package rootless gives an unprivileged process on Linux the privileges over
// namespaces for which the node otherwise needs root.
//
// # Model
//
// A user namespace makes its owner root over what is created inside it, and nothing
// else: mounts and networks, but no file or device of the machine. [Enter]
// re-executes this program, as the same process, inside such a namespace. It
// continues in the machine's own network and file system, but its threads may now
// create mount, UTS and network namespaces.
//
//	the machine          user alice           diwan kubectl …
//	└─ user namespace    root of this one     diwan up
//	   └─ one a container, as alice           sh, python3 train.py
//
// The process sees itself as root, so use [Root] to check for the machine's root:
// to become another user, or to chown files. Containers get one more user
// namespace, in which they are the user again ([AsUser]): a program sees the name,
// files and lack of privileges that it would have in the user's shell. One ID
// represents the user there, which may be a different one that a manifest asks for.
//
// # Life
//
// No process owns the namespace. It lives as long as diwan or a container does;
// after a kill, the next diwan finds it through the containers and enters it again,
// and so has the same privileges over their networks.
//
// # Where it is not allowed
//
// Kernels and their security modules can forbid user namespaces, or restrict them.
// [Enter] tries before it executes anything, and its error names the remedy. The
// caller then continues without.
package rootless
