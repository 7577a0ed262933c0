// SPDX-License-Identifier: Apache-2.0

// Package entry is the small wrapper that runs a trial's program in its
// container on a cluster, so that a collector in another container sees its
// output and can finish before the container ends.
//
// # The model
//
// Both containers mount a [Dir]. [Install] puts this program there, so that the
// trial's image needs nothing: no shell, no tee. [Run] starts the trial's
// program unchanged, with its arguments, environment, standard input and
// signals, and copies its output to the container's own output and to a file.
//
//	program ──pipe──▶ entry ──▶ output file ──▶ collector
//	                    └─────▶ log of the container
//
// When the program has exited, Run records that and waits until the collector
// has stored everything, or until its patience runs out. Only then does it exit,
// with the program's exit code. So no output is lost if the collector is killed,
// or its store is unavailable for a while: the container still exists, and the
// collector is restarted. And a collector that never answers does not delay the
// trial forever.
//
// The program uses only this package and the standard library: it is copied for
// each trial, and its memory counts toward the trial's container.
package entry
