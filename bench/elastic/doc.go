// SPDX-License-Identifier: Apache-2.0

// Command elastic measures what it costs a training that workers come and go: how long no step is done after a worker is
// killed or added, whether the data is counted exactly, and what the training comes to, beside a training that nobody
// disturbs and beside torchrun, which starts every process again. A second measurement has two jobs share a
// cluster that cannot hold both whole, elastic and as gangs, as ElasticDL's report does.
//
//	go run ./bench/elastic [-python PYTHON] [recover] [share]
//
// The tables go to bench/results/elastic-recover.md and elastic-share.md. Workers are worker.py, real training on
// handwritten digits; what an accelerator would take is slept, since the cores of one machine are no measure of many.
package main
