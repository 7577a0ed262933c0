// SPDX-License-Identifier: Apache-2.0

// Package mysql stores observations in a MySQL or MariaDB database.
//
// The tables observation_schema, observation_sources and observation_points are
// created in the URL's database; none has the name of Katib's table, so that
// both can share a database. Several processes may open and use the same store
// concurrently.
//
// The identity of a source is stored as bytes: every collation that both
// servers support treats "a" and "a " as equal.
package mysql
