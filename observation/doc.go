// SPDX-License-Identifier: Apache-2.0

// Package observation stores what trials report: time series of named values.
//
// # The model
//
// A [Trial] reports [Point]s: at this time, this metric had this value. A value
// is a string, because an architecture search reports text; [Summarize]
// aggregates those that are numbers.
//
// Points come from sources: the output of one attempt of a container, or a file
// that it writes. A source is a sequence of bytes, and a [Batch] is what its
// bytes From to To contain. [Store.Append] stores the points and advances the
// source's offset to To in one transaction, and rejects a batch that does not
// start where the last one ended. So a reader that is killed at any moment asks
// [Store.Offset] where to resume, and no point is ever lost or stored twice,
// without any other record of progress.
//
// # Stores
//
// Package [diwan.dev/diwan/observation/sqlite] stores them in one file,
// [diwan.dev/diwan/observation/postgres] and [diwan.dev/diwan/observation/mysql]
// in a database that several processes share, and
// [diwan.dev/diwan/observation/memory] in memory, for tests and for searches
// that need not outlive their process. [diwan.dev/diwan/observation/stores]
// opens the configured one. All pass the conformance suite in
// [diwan.dev/diwan/observation/observationtest], and so must any other.
package observation
