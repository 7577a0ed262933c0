// SPDX-License-Identifier: Apache-2.0

// Package entry is the small program that runs a trial's program in its
// container on a cluster, so that a collector in a container beside it sees what
// it prints and is heard before the container ends.
//
// # The model
//
// Both containers mount a [Dir]. [Install] puts this program there, so that the
// image of the trial needs nothing: no shell, no tee. [Run] starts the trial's
// program as it is, with its arguments, environment, standard input and signals,
// and copies what it prints to the container's own output and to a file.
//
//	program ──pipe──▶ entry ──▶ output file ──▶ collector
//	                    └─────▶ log of the container
//
// When the program has ended, Run writes that down and waits until the collector
// has stored everything, or until its patience is over. Only then does it end,
// with the program's exit code. So nothing that the program printed is lost when
// the collector was killed, or its store is away for a while: the container is
// still there, and the collector is started again. And a collector that never
// answers does not hold up the trial for ever.
//
// The program is built from this package and the standard library alone: it is
// copied for each trial, and its memory counts for the trial's container.
package entry
