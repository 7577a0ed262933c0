// SPDX-License-Identifier: Apache-2.0

// Package cli is the command line of diwan.
//
// [Main] runs one command and returns its exit code; cmd/diwan is nothing but a call of it. Each
// command is a file: run.go, up.go, operator.go, kubectl.go, images.go, version.go. What several
// need is beside them: options.go (flags of all commands), connect.go (the cluster that a command
// works against), stop.go (interruption), exit.go (exit codes). The sub-packages do the work and
// know no flags: manifest reads files, apply brings objects into a cluster, follow watches them,
// progress renders what is seen.
//
// Exit codes: 0 done, 1 the work failed, 2 wrong usage, 130 interrupted. Results go to standard
// output; everything else, progress included, to standard error.
package cli
