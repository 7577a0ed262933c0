// SPDX-License-Identifier: Apache-2.0

// Package rootless gives a process of an ordinary user, on Linux, the rights over
// namespaces that the node otherwise needs root for.
//
// # Model
//
// A user namespace makes its owner root of what is made inside it, and of
// nothing else: mounts and networks, but no file or device of the machine.
// [Enter] executes this program once more, as the same process, inside such a
// namespace. It goes on in the machine's own network and file system; what is new
// is that its threads may make mount, host name and network namespaces.
//
//	the machine          user alice           diwan kubectl …
//	└─ user namespace    root of this one     diwan up
//	   └─ one a container, as alice           sh, python3 train.py
//
// In its own eyes the process is root, so [Root] is to be asked where the rights
// of the machine's root are meant: to become another user, or to give files away.
// Containers get one more user namespace, in which they are the user again
// ([AsUser]): a program sees the name, files and lack of privileges that it would
// have in the user's shell. One id stands for the user there, which may be another:
// what a manifest asks for.
//
// # Life
//
// No process keeps the namespace. It lives as long as diwan or a container does;
// a diwan that comes after a killed one finds it by the containers and enters it
// again, and so has the same rights over their networks.
//
// # Where it is not allowed
//
// Kernels and their security modules can forbid user namespaces, or take their
// rights away. [Enter] tries before it executes anything, and its error names the
// remedy. The caller then goes on without.
package rootless
