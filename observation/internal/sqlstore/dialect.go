// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
)

// Dialect is what one kind of database needs said in its own way.
type Dialect struct {
	// Schema brings the database to the newest version.
	Schema Schema
	// Session are statements for each connection that writes.
	Session []string
	// Begin begins a transaction that writes.
	Begin string
	// Lock ends a SELECT whose rows must not change until the transaction ends.
	Lock string
	// KeepExisting ends an INSERT that does nothing for rows that exist.
	KeepExisting string
	// MetricIs compares a metric's name with an argument, byte for byte.
	MetricIs string
	// Arrays says that the points of an INSERT are given as an array a column,
	// which the database reads quicker than a long list of rows.
	Arrays bool
	// Numbered says that arguments are written $1, $2; else they are question
	// marks.
	Numbered bool
	// Answered reports whether an error is the database's own answer: the
	// statement had no effect, and the connection lives. Others may mean that
	// the connection is lost.
	Answered func(error) bool
	// Repeat reports whether an answer is that other transactions were in the
	// way, so that the same transaction may succeed next.
	Repeat func(error) bool
	// Explain adds an explanation and a hint to an error.
	Explain func(error) error
}

// Schema is the way from an empty database to the newest version.
type Schema struct {
	// Lock keeps other processes from migrating, until Unlock or Abandon.
	Lock func(context.Context, *sql.Conn) error
	// Unlock makes the migration durable; Abandon undoes what can be undone.
	Unlock, Abandon string
	// Version returns the version of the database, 0 for an empty one.
	Version func(context.Context, *sql.Conn) (int, error)
	// Migrations bring a database from version i, their index, to i+1. Where
	// Abandon does not undo them, they can be run again.
	Migrations [][]string
	// SetVersion returns the statement that writes a version down.
	SetVersion func(version int) string
}

// text returns a statement with its arguments written as the dialect does.
func (d *Dialect) text(statement string) string {
	if !d.Numbered {
		return statement
	}
	var b strings.Builder
	for n := 1; ; n++ {
		before, after, found := strings.Cut(statement, "?")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteByte('$')
		b.WriteString(strconv.Itoa(n))
		statement = after
	}
}

// rows returns n groups of columns question marks, as VALUES has them.
func rows(n, columns int) string {
	group := "(?" + strings.Repeat(",?", columns-1) + ")"
	return group + strings.Repeat(","+group, n-1)
}
