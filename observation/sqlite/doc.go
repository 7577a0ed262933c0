// SPDX-License-Identifier: Apache-2.0

// Package sqlite keeps observations in one SQLite file.
//
// # The file
//
// The file is in write-ahead mode: readers see the last committed transaction,
// never wait for the writer and never hold it up. A call that has returned
// survives the loss of power. A file that is damaged, foreign or of a later
// version is refused by name, and never changed; one of an earlier version is
// brought to the newest when it is opened.
package sqlite
