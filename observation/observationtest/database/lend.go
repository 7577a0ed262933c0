// SPDX-License-Identifier: Apache-2.0

package database

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
)

// Main runs the tests of a package with one server, which [Kind.Shared] names
// to them and to the processes that they start. Call it from TestMain with
// m.Run; it returns the exit code. Properties are checked with fewer examples
// than usual, unless the command line says otherwise: each takes a database.
func (k *Kind) Main(run func() int) int {
	_ = flag.Set("rapid.checks", "25")
	if os.Getenv(k.environment()) != "" { // another process's server
		return run()
	}
	server, err := k.Start(context.Background())
	var missing *Missing
	switch {
	case errors.As(err, &missing):
		return run()
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	os.Setenv(k.environment(), server.URL())
	code := run()
	if err := server.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// Shared returns the URL of the server that Main started.
func (k *Kind) Shared(t testing.TB) string {
	t.Helper()
	location := os.Getenv(k.environment())
	if location == "" {
		_, err := k.Start(t.Context()) // says what is missing
		k.lacking(t, err)
	}
	return location
}

// Lend starts a server for one test, which may kill it.
func (k *Kind) Lend(t testing.TB) *Server {
	t.Helper()
	server, err := k.Start(t.Context())
	if err != nil {
		k.lacking(t, err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Errorf("cannot remove the data of %s: %v", k.Name, err)
		}
	})
	return server
}

// lacking ends a test that has no server.
func (k *Kind) lacking(t testing.TB, err error) {
	t.Helper()
	var missing *Missing
	if errors.As(err, &missing) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	t.Fatalf("no server of %s: %v", k.Name, err)
}

// Within returns the URL of a database of a name, of letters, digits and
// underscores, on the server of another URL, and makes it if it is not there.
// For PostgreSQL it is a schema, which is quicker made.
func Within(ctx context.Context, location, name string) (string, error) {
	u, err := url.Parse(location)
	if err != nil {
		return "", err
	}
	var db *sql.DB
	statement := "CREATE DATABASE IF NOT EXISTS " + name
	if u.Scheme == "mysql" {
		if db, err = openMySQL(location); err != nil {
			return "", err
		}
		u.Path = "/" + name
	} else {
		if db, err = sql.Open("pgx", location); err != nil {
			return "", err
		}
		statement = "CREATE SCHEMA IF NOT EXISTS " + name
		query := u.Query()
		query.Set("search_path", name)
		u.RawQuery = query.Encode()
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, statement)
	return u.String(), err
}

// splitMySQL returns host:port and the database of a URL.
func splitMySQL(location string) (host, name string, err error) {
	u, err := url.Parse(location)
	if err != nil {
		return "", "", err
	}
	return u.Host, strings.TrimPrefix(u.Path, "/"), nil
}
