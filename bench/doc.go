// SPDX-License-Identifier: Apache-2.0

// Command bench benchmarks bin/diwan from the outside, as users see it: how fast
// it starts, what it uses when idle, what a trial costs beyond the program that it
// runs, and whether that cost stays flat over thousands of trials. Each benchmark
// runs its peer in the same run, since machines differ and drift; the tables go to
// bench/results.
//
//	go run ./bench start overhead scale load many jobs large
//
// DIWAN names another binary to measure, DIWAN_UP additional arguments for its
// `up`. With -profile DIR, load writes memory and CPU profiles after every
// thousandth trial, and jobs and large for their first seconds, with a summary of
// where the time went. -trials and -experiments shorten load and many, JOBS and
// REPLICAS in the environment jobs and large. ray needs a Python with Ray Tune.
package main
