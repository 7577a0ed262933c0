// SPDX-License-Identifier: Apache-2.0

// Package process runs containers as process groups on this machine. It is the
// [container.Runtime] that needs only a shell.
//
// # The shim
//
// Each run is started by a few lines of /bin/sh, in its own session, that keep
// running until the program has exited:
//
//	trap : TERM INT …          signals are for the program
//	echo $$ >&3                line 1 of the run file: the process group
//	(exec "$@") 3>&- …         the program; it does not get the run file
//	echo $? >&3                line 2 of the run file: the exit code
//
// So the exit code does not depend on the node. File 3, the run file, is locked
// (flock) before the fork, and only the shim keeps it open. Hence, after a kill
// of the node at any instruction:
//
//	line 2 is there       the program ended, with this code
//	the lock is held      the shim lives: adopt it
//	neither               nothing runs, and nobody knows the end (Lost)
//
// A run's directory, with its description, is written before the fork and
// removed after its last process is gone, so no process is ever unknown.
//
// A run with a standard input or a terminal has a keeper beside its shim (package
// keeper), so that these do not depend on the node either.
//
// # Surroundings
//
// As root on Linux, or as an ordinary user in a user namespace (package
// rootless), a run gets its own mount and UTS namespaces and joins its Pod's
// network namespace. No helper program is needed: a thread of this process enters
// the namespaces, forks from there, and exits. The root directory stays the
// host's. A mount target that does not exist on the host is created there, empty
// and marked by an extended attribute; the last run on the machine that needs it
// removes it. If this process may not create it, the run sees a private copy of
// the deepest existing directory, with the same content.
//
// A user's run is in one more user namespace, in which it is the user: it has no
// privileges over the outer namespaces.
//
// Elsewhere volumes are not mounted: see [Runtime.Mounts].
//
// # Membership
//
// Every process of a run belongs to one cgroup if cgroup v2 is mounted and
// writable. Otherwise it is recognized by the variable DIWAN_CONTAINER_ID, which
// children inherit even when they leave the session. When the program has exited,
// its remaining processes are killed.
package process
