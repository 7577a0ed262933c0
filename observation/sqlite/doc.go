// SPDX-License-Identifier: Apache-2.0

// Package sqlite keeps observations in one SQLite file.
//
// # Writing
//
// One goroutine owns the one connection that writes. Calls hand it their
// changes; it runs all that are waiting in one transaction, and each call
// returns once that transaction is on disk. So a hundred trials that report at
// the same moment cost one write to the disk, not a hundred, and a call that
// has returned survives the loss of power. A change that is refused leaves the
// others of its transaction alone.
//
// # Reading
//
// The file is in write-ahead mode: readers see the last committed transaction,
// never wait for the writer and never hold it up. The points of a trial are
// found by an index, so that the cost of reading them does not grow with the
// number of trials.
//
// # The file
//
// The tables have the shape of Katib's observation_logs, with namespace and
// source added; times are text in UTC that sorts as time does. The statements
// are in one file, schema.go, and use nothing that PostgreSQL and MySQL lack.
// A file that is damaged, foreign or of a later version is refused by name, and
// never changed.
package sqlite
