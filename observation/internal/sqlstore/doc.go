// SPDX-License-Identifier: Apache-2.0

// Package sqlstore keeps observations in an SQL database. What databases differ
// in is a [Dialect]; everything else is here, once.
//
// # The schema
//
// Each source has a row in observation_sources, with the offset up to which it
// is stored; each point has one in observation_points, which names its source
// by number and is found by an index on it. So a point costs its own time, name
// and value, and reading a trial costs the same however many others there are.
// Times are text in UTC of a fixed width: no database has a type for the years
// 0 to 9999 to the nanosecond, and such text sorts as time does.
//
// # Writing
//
// One goroutine owns the one connection that writes. Calls hand it their
// changes; it runs all that are waiting in one transaction of five statements,
// and each call returns once that transaction is durable. So a hundred trials
// that report at the same moment cost one commit, not a hundred. A change that
// is refused leaves the others of its transaction alone.
//
// Several processes may write at once: a transaction locks the sources that it
// changes. Where the answer to a COMMIT is lost, nobody can tell whether it
// happened; so the writer connects again and looks, for as long as it takes. An
// error of Append therefore means that the batch is not stored.
package sqlstore
