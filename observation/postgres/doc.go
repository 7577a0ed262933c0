// SPDX-License-Identifier: Apache-2.0

// Package postgres keeps observations in a PostgreSQL database.
//
// The tables observation_schema, observation_sources and observation_points are
// made in the schema that the connection's search_path names first; none of
// them has the name of Katib's table, so that both can share a database. Several
// processes may use, and open, the same store at once.
//
// Values are kept in the order of their bytes, whatever the locale of the
// database; its encoding must be UTF8.
package postgres
