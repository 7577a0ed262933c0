// SPDX-License-Identifier: Apache-2.0

// Package early makes the program that imports it the monitor of a container, before
// the rest of that program is initialised.
//
// # Why early
//
// The product is one large binary, whose packages need a tenth of a second of CPU time
// for their initialisation. A container's monitor needs none of them. Go initialises
// packages as soon as what they import is, and in the order of their paths. This one
// imports only what is at the bottom of the standard library, and its path begins with a
// small letter, so its init comes before nearly everything. Under the name [Name] it does
// not return. It must import nothing that is not in the standard library.
//
// # The monitor
//
// The monitor is the parent of a container's program. It is in no cgroup of the container.
// Its main thread makes the namespaces, but for those of processes and users, which are the
// child's:
//
//	diwan ─▶ monitor ─ clone ─▶ child, PID 1
//	            │                  │
//	     overlay, /dev, volumes   mounts /proc, its cgroups
//	            │ ◀────────────────┤
//	          masks                │
//	            └─── go ─────────▶ │ pivots, gives up rights, installs the filter,
//	                               ▼ executes the program
//
// The child is a fork that executes nothing before the program. It runs none of Go's
// runtime: no allocation, no stack growth, no signal handlers; it makes system calls with
// what the thread prepared. It has one thread, so it may enter user namespaces, which no
// other Go code can.
//
// The monitor then copies the program's output to the log, waits for its end, and writes
// the exit code to the run file. File 3 is the [Job]; the other files are listed beside
// it. What the monitor has to tell is one [Result] on its file [StatusFile].
//
// A command that is executed beside a program has the same child. Its monitor has no log
// and no run file.
package early
