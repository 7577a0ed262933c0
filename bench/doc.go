// SPDX-License-Identifier: Apache-2.0

// Command bench measures bin/diwan from outside, as its users meet it: how
// quickly it starts, what it holds at rest, what a trial costs beyond the
// program that it runs, and whether that cost stays flat over thousands of
// trials. Each measurement runs its peer in the same run, since machines
// differ and drift; the tables go to bench/results.
//
//	go run ./bench start overhead scale load many jobs large
//
// DIWAN names another binary to measure, DIWAN_UP more arguments of its `up`.
// -profile DIR has load write profiles of memory and processor after each
// thousandth trial, and jobs and large of their first seconds, of which these tell
// where the time went. -trials and -experiments make load and many shorter, JOBS
// and REPLICAS in the environment jobs and large. ray needs a Python that has Ray
// Tune.
package main
