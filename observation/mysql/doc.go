// SPDX-License-Identifier: Apache-2.0

// Package mysql keeps observations in a MySQL or MariaDB database.
//
// The tables observation_schema, observation_sources and observation_points are
// made in the database that the URL names; none of them has the name of Katib's
// table, so that both can share a database. Several processes may use, and
// open, the same store at once.
//
// What identifies a source is kept as bytes: every collation that both servers
// know takes "a" and "a " for equal.
package mysql
