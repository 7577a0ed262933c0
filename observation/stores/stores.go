// SPDX-License-Identifier: Apache-2.0

// Package stores opens the observation store that one setting names.
//
// The setting is text, such as postgres://user:password@host/database, from a
// flag, an environment variable or a file. [Resolve] reads it, and [Open]
// opens the store:
//
//	sqlite:PATH                        a file
//	postgres://USER:PASSWORD@HOST/NAME a PostgreSQL database
//	mysql://USER:PASSWORD@HOST/NAME    a MySQL or MariaDB database
//	memory:                            nothing that outlives the process
package stores

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"diwan.dev/diwan/observation"
	"diwan.dev/diwan/observation/memory"
	"diwan.dev/diwan/observation/mysql"
	"diwan.dev/diwan/observation/postgres"
	"diwan.dev/diwan/observation/sqlite"
)

// ErrLocation is wrapped by errors about a location that no store can have.
var ErrLocation = errors.New("want sqlite:PATH, postgres://USER@HOST/DATABASE or mysql://USER@HOST/DATABASE")

// Check validates the form of a location. The error wraps ErrLocation and
// repeats only the scheme of the location, since the rest may contain a
// password.
func Check(location string) error {
	scheme, rest, found := strings.Cut(location, ":")
	if !found {
		return fmt.Errorf("it specifies no kind of store: %w", ErrLocation)
	}
	switch scheme {
	case "memory":
		if rest != "" {
			return fmt.Errorf("memory: has nothing behind the colon: %w", ErrLocation)
		}
	case "sqlite":
		if rest == "" {
			return fmt.Errorf("sqlite: lacks a file path: %w", ErrLocation)
		}
	case "postgres", "postgresql", "mysql", "mariadb":
		if !strings.HasPrefix(rest, "//") {
			return fmt.Errorf("%s: lacks // and a host: %w", scheme, ErrLocation)
		}
	default:
		if len(scheme) > 20 {
			return ErrLocation
		}
		return fmt.Errorf("unknown kind of store %q: %w", scheme, ErrLocation)
	}
	return nil
}

// Open opens the store at a location. Of a file it makes the directory too, if
// it is not there. An error names no password.
func Open(ctx context.Context, location string) (observation.Store, error) {
	if err := Check(location); err != nil {
		return nil, fmt.Errorf("cannot open observation store: %w", err)
	}
	scheme, rest, _ := strings.Cut(location, ":")
	switch scheme {
	case "memory":
		return memory.New(), nil
	case "sqlite":
		if err := os.MkdirAll(filepath.Dir(rest), 0o700); err != nil {
			return nil, fmt.Errorf("cannot create the directory of observation store %s: %w", rest, err)
		}
		return sqlite.Open(ctx, rest)
	case "postgres", "postgresql":
		return postgres.Open(ctx, location)
	default:
		return mysql.Open(ctx, "mysql:"+rest)
	}
}
