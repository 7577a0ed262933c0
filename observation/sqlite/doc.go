// SPDX-License-Identifier: Apache-2.0

// Package sqlite stores observations in one SQLite file.
//
// # The file
//
// The file is in WAL mode: readers see the last committed transaction and
// never block the writer, nor it them. A call that has returned survives a
// power loss. A corrupt or foreign file, or one of a later version, is
// rejected with an error that names it, and never changed; one of an earlier
// version is migrated when it is opened.
package sqlite
