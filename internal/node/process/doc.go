// SPDX-License-Identifier: Apache-2.0

// Package process runs containers as process groups of this machine. It is the
// [container.Runtime] that needs nothing but a shell.
//
// # The shim
//
// Each run is started by a few lines of /bin/sh, in a session of its own, that
// stay until the program has ended:
//
//	trap : TERM INT …          signals are for the program
//	echo $$ >&3                line 1 of the run file: the process group
//	(exec "$@") 3>&- 5>&-      the program; it does not get the run file
//	echo $? >&3                line 2 of the run file: the exit code
//
// So the exit code does not depend on the node's life. File 3, the run file, is
// locked (flock) before the fork, and the shim is the only one that keeps it
// open. Three facts follow that hold after a kill of the node at any
// instruction:
//
//	line 2 is there       the program ended, with this code
//	the lock is held      the shim lives: adopt it
//	neither               nothing runs, and nobody knows the end (Lost)
//
// A run's directory, with its description, is written before the fork and
// removed after its last process is gone, so no process is ever unknown.
//
// # Surroundings
//
// As root on Linux, or as an ordinary user in a user namespace (package
// rootless), a run gets its own mount and host name namespaces and joins
// its Pod's network namespace. No helper program is needed: a thread of this
// process changes its own surroundings, forks from there, and ends. The root
// directory stays the host's. A mount target that does not exist on the host is
// created there, empty; such directories are remembered, and removed when the
// runtime is closed with no run left. Where this process may not create it, the
// run sees a directory of its own in place of the deepest one that exists, with
// the same content.
//
// A user's run is in one more user namespace, in which it is the user: it has no
// rights over the namespaces around it.
//
// Elsewhere volumes appear nowhere: [Runtime.Mounts] tells.
//
// # Membership
//
// Every process of a run belongs to one control group where cgroup v2 is
// mounted and writable. Elsewhere it is recognised by the variable
// DIWAN_CONTAINER_ID, which children inherit even when they leave the session.
// When the program has ended, what it left behind is killed.
package process
