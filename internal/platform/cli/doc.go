// SPDX-License-Identifier: Apache-2.0

// Package cli is the command line of diwan.
//
// [Main] runs one command and returns its exit code; cmd/diwan only calls it. Each command is a
// file: run.go, up.go, operator.go, kubectl.go, images.go, version.go. Shared parts are next to
// them: options.go (global flags), connect.go (the target cluster of a command), stop.go
// (interruption), exitcodes.go. The sub-packages do the work and know no flags: manifest
// reads files, apply applies objects, follow watches them, progress renders them.
//
// Exit codes: 0 success, 1 the work failed, 2 usage error, 130 interrupted. Results go to
// standard output; everything else, including progress, to standard error.
package cli
