// SPDX-License-Identifier: Apache-2.0

// Package keeper keeps a container's standard input and terminal open while the
// container runs, whether or not Diwan is running.
//
// A container with stdin or tty needs a process at the other end of its pipe or
// pseudo-terminal: without a writer the program reads EOF, and without a reader
// of its terminal it blocks or gets SIGHUP. Diwan may be killed at any time, so
// that is a separate small process, this binary under the name [Name]. It holds
// the write end of the pipe, or the terminal's master, and copies the terminal's
// output to the container's log.
//
// To attach, a client connects to a socket in the run's directory, which only
// the owner can enter, and receives a duplicate of that file: input, and the
// terminal's size, go straight to the container. Output is read from the log, as
// for any other container.
//
//	attach ──▶ Connect ──▶ socket ──▶ keeper
//	   └──── write, resize ────▶ pipe or master ──▶ program
//	                                       program ──▶ keeper ──▶ log ──▶ attach
//
// The keeper ends with the container: the shim (package process) holds a pipe to
// it, and waits until the keeper has copied the remaining output.
package keeper
