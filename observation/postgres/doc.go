// SPDX-License-Identifier: Apache-2.0

// Package postgres stores observations in a PostgreSQL database.
//
// The tables observation_schema, observation_sources and observation_points are
// created in the first schema of the connection's search_path; none has the name
// of Katib's table, so that both can share a database. Several processes may
// open and use the same store concurrently.
//
// Values are ordered by bytes, whatever the database's locale; its encoding must
// be UTF8.
package postgres
