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

	"github.com/go-sql-driver/mysql"
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
func (k *Kind) Lend(t testing.TB) *Server { return k.lend(t, k.quick) }

// LendDurable starts a server that waits for the disk at each commit.
func (k *Kind) LendDurable(t testing.TB) *Server { return k.lend(t, nil) }

func (k *Kind) lend(t testing.TB, options []string) *Server {
	t.Helper()
	server, err := k.start(t.Context(), options)
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
	db, err := open(location)
	if err != nil {
		return "", err
	}
	defer db.Close()
	statement := "CREATE DATABASE IF NOT EXISTS " + name
	if u.Scheme == "mysql" {
		u.Path = "/" + name
	} else {
		statement = "CREATE SCHEMA IF NOT EXISTS " + name
		query := u.Query()
		query.Set("search_path", name)
		u.RawQuery = query.Encode()
	}
	_, err = db.ExecContext(ctx, statement)
	return u.String(), err
}

// SQL runs statements in a database, until the test ends.
func SQL(t testing.TB, location string) *sql.DB {
	t.Helper()
	db, err := open(location)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// open opens a database by a URL of this package.
func open(location string) (*sql.DB, error) {
	u, err := url.Parse(location)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "mysql" {
		return sql.Open("pgx", location)
	}
	config := mysql.NewConfig()
	config.User, config.Net, config.Addr, config.DBName = "root", "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
	config.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}
