// SPDX-License-Identifier: Apache-2.0

// Command elastic measures what it costs a training when workers come and go: how long no step is done after a worker is
// killed or added, whether the data is counted exactly, and the final result, compared with an undisturbed training and
// with torchrun, which restarts every process. A second benchmark has two jobs share a cluster that is too small for
// both, elastic and as gangs, as in ElasticDL's report.
//
//	go run ./bench/elastic [-python PYTHON] [recover] [share]
//
// The tables go to bench/results/elastic-recover.md and elastic-share.md. Workers are worker.py, real training on
// handwritten digits; accelerator time is simulated by sleeping, since the cores of one machine cannot represent many.
package main
