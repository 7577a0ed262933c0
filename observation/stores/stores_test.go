// SPDX-License-Identifier: Apache-2.0

package stores_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"diwan.dev/diwan/observation"
	"diwan.dev/diwan/observation/observationtest"
	"diwan.dev/diwan/observation/stores"
)

func TestResolve(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "location")
	if err := os.WriteFile(file, []byte("\n mysql://u:p@h/db \nmore\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	big := filepath.Join(t.TempDir(), "big")
	if err := os.WriteFile(big, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		reason, setting string
		env             map[string]string
		want, wrong     string
	}{
		"Itself":   {reason: "A location is itself.", setting: "sqlite:/tmp/a b.db", want: "sqlite:/tmp/a b.db"},
		"File":     {reason: "A file holds it in its first line.", setting: "@" + file, want: "mysql://u:p@h/db"},
		"NoFile":   {reason: "A file that is not there is named.", setting: "@/none", wrong: "open /none"},
		"BigFile":  {reason: "Somebody named another file.", setting: "@" + big, wrong: "is not a file with one line"},
		"Kind":     {reason: "There is no such store.", setting: "redis://u:hush@h", wrong: `"redis"`},
		"NoHost":   {reason: "A URL has two slashes.", setting: "postgres:hush", wrong: "lacks //"},
		"NoPath":   {reason: "A file has a path.", setting: "sqlite:", wrong: "lacks a file path"},
		"Password": {reason: "What has no form may be a password.", setting: "hush", wrong: "specifies no kind"},
		"Memory":   {reason: "Memory has no name.", setting: "memory:hush", wrong: "nothing behind the colon"},
		"KatibMySQL": {
			reason: "Katib's variables name a database, and what they leave out is Katib's default.", setting: "katib:",
			env:  map[string]string{"DB_NAME": "mysql", "DB_PASSWORD": "p@ss/w:rd?"},
			want: "mysql://root:p%40ss%2Fw%3Ard%3F@katib-mysql:3306/katib",
		},
		"KatibPostgres": {
			reason: "All of them count.", setting: "katib:",
			env: map[string]string{"DB_NAME": "postgres", "DB_USER": "me", "DB_PASSWORD": "pw", "KATIB_POSTGRESQL_DB_HOST": "::1",
				"KATIB_POSTGRESQL_DB_PORT": "1", "KATIB_POSTGRESQL_DB_DATABASE": "d", "KATIB_POSTGRESQL_SSL_MODE": "require"},
			want: "postgres://me:pw@[::1]:1/d?sslmode=require",
		},
		"KatibNothing": {reason: "Which database it is must be said.", setting: "katib:", wrong: "DB_NAME"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := stores.Resolve(tc.setting, func(key string) string { return tc.env[key] })
			switch {
			case tc.wrong == "" && (err != nil || got != tc.want):
				t.Errorf("%s Resolve(%q) = %q, %v; want %q", tc.reason, tc.setting, got, err, tc.want)
			case tc.wrong != "" && (err == nil || !strings.Contains(err.Error(), tc.wrong)):
				t.Errorf("%s Resolve(%q): got %v, want an error with %q", tc.reason, tc.setting, err, tc.wrong)
			case err != nil && strings.Contains(err.Error(), "hush"):
				t.Errorf("%s Resolve(%q) tells a password: %v", tc.reason, tc.setting, err)
			}
		})
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	observationtest.Run(t, func(ctx context.Context, dir string) (observation.Store, error) {
		return stores.Open(ctx, "sqlite:"+filepath.Join(dir, "of", "its", "own", "file.db"))
	})
}

// FuzzOpen opens locations that no server can have: none may take long, tell
// its password, or open.
func FuzzOpen(f *testing.F) {
	for _, location := range []string{
		"postgres://u:hush@127.0.0.1:1/db", "postgres://u:hush@127.0.0.1:1/db?sslmode=hush", "postgres://u:hush@127.0.0.1:x/db",
		"postgresql://127.0.0.1:1/db?password=hush&port=hush", "postgres://127.0.0.1:1/db?password=hush&connect_timeout=soon",
		"mysql://u:hush@127.0.0.1:1/db", "mysql://u:hush@/db", "mysql://u:hush@127.0.0.1:1/", "mysql://u:hush@127.0.0.1:1/db?tls=hush",
		"mariadb://u:hush@127.0.0.1:1/db?hush", "mysql://u:hush@%zz/db", "postgres://u:hush@%zz/db", "mysql://u:hush@127.0.0.1:1/db?ca=/none&tls=true",
		"mysql://u:hush@127.0.0.1:1/db?password=hush", "mysql:hush", "hush", "oracle://hush", "postgres://u:%hush@127.0.0.1/db",
	} {
		f.Add(location)
	}
	f.Fuzz(func(t *testing.T, location string) {
		scheme, _, _ := strings.Cut(location, ":")
		if scheme == "sqlite" || scheme == "memory" {
			return
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // nothing is reached
		store, err := stores.Open(ctx, location)
		if err == nil {
			_ = store.Close()
			t.Fatalf("Open(%q) opened something", location)
		}
		secret := strings.Count(location, "hush") == 1 && (strings.Contains(location, ":hush@") || strings.Contains(location, "password=hush"))
		if secret && strings.Contains(err.Error(), "hush") {
			t.Errorf("Open(%q) tells the password: %v", location, err)
		}
		if errors.Is(err, stores.ErrLocation) != (stores.Check(location) != nil) {
			t.Errorf("Open(%q) and Check(%q) differ: %v, %v", location, location, err, stores.Check(location))
		}
	})
}
