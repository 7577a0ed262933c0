// SPDX-License-Identifier: Apache-2.0

// Package sqlstore stores observations in an SQL database. Differences between
// databases are in a [Dialect]; everything else is here, once.
//
// # The schema
//
// Each source has a row in observation_sources, with the offset up to which it
// is stored; each point has one in observation_points, with an indexed
// reference to its source. So a point stores only its own time, name and value,
// and reading a trial costs the same however many others there are. Times are
// fixed-width text in UTC: no database has a type for the years 0 to 9999 with
// nanoseconds, and such text sorts by time.
//
// # Writing
//
// One goroutine owns the only connection that writes. Calls hand it their
// changes; it commits all waiting changes in one transaction of five
// statements, and each call returns once that transaction is durable. So a
// hundred trials that report at the same moment cost one commit, not a hundred.
// A rejected change does not affect the others in its transaction.
//
// Several processes may write concurrently: a transaction locks the sources
// that it changes. If the response to a COMMIT is lost, it is unknown whether
// it happened; so the writer reconnects and checks, for as long as it takes. An
// error from Append therefore means that the batch is not stored.
package sqlstore
