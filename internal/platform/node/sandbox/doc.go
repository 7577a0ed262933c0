// SPDX-License-Identifier: Apache-2.0

// Package sandbox runs containers of images: each in a root file system made of an image's
// layers, in namespaces of its own. It is the [container.Runtime] beside package process.
//
// # A run
//
// Each run has a monitor, this program under another name (package early), in a session of
// its own. It makes the container, copies the program's output to the log, waits for the
// program's end and records the exit code. The protocol is that of package process: the
// run file is locked before the monitor starts, and only the monitor keeps it open, so
// that a run's outcome is known after a kill of the node at any instruction:
//
//	line 1, "PID TICKS"   the program: PID 1 of its namespace, and when it started
//	line 2, "CODE"        it ended, with this code
//	the lock is held      the monitor lives: adopt it
//	neither               nothing runs, and nobody knows the end (Lost)
//
// Line 1 is there before the program does anything. If the monitor dies, the kernel kills
// the program, and with it all processes of its PID namespace.
//
// # Root directory
//
// Layers are the lower directories of an overlay. What a run writes is in its own directory
// and ends with it. All mounts are in the run's mount namespace, so a kill leaves none on the
// machine. Nothing in the container's own file systems is a device, whatever is in the image
// or made there: the usual devices are mounts of the machine's.
//
// # Rights
//
// As root, a run has the machine's users, limited by capabilities, a seccomp filter, and
// masks over /proc and /sys as a kubelet's runtime has them. The node of an ordinary user
// is root of a user namespace (package rootless), and gives each run one more, in which that
// one user has the ids that the run asks for; no other ids exist there.
//
// This program itself is executed from a mount that is read-only even for root, so a
// container that gets hold of it through /proc cannot change it (CVE-2019-5736).
package sandbox
