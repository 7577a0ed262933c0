// SPDX-License-Identifier: Apache-2.0

package database

import (
	"fmt"
	"path/filepath"
	"strconv"
)

// Postgres is PostgreSQL. Its clients need no password.
func Postgres() *Kind {
	return &Kind{
		Name:     "PostgreSQL",
		hint:     "install it, such as by apt-get install postgresql",
		programs: []string{"initdb", "postgres"},
		dirs:     []string{"/usr/lib/postgresql/*/bin", "/opt/homebrew/opt/postgresql*/bin"},
		prepare: func(programs []string, dir string) []string {
			return []string{programs[0], "-D", dir, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"}
		},
		serve: func(programs []string, dir string, port int) []string {
			return []string{programs[1], "-D", dir, "-h", "127.0.0.1", "-p", strconv.Itoa(port), "-k", "", "-c", "max_connections=200"}
		},
		quick: []string{"-c", "fsync=off", "-c", "full_page_writes=off"},
		url: func(port int) string {
			return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", port)
		},
	}
}

// MariaDB is MariaDB, which speaks MySQL's protocol. Its user root has no
// password.
func MariaDB() *Kind {
	return &Kind{
		Name:     "MariaDB",
		hint:     "install it, such as by apt-get install mariadb-server-core mariadb-client-core",
		programs: []string{"mariadb-install-db", "mariadbd"},
		dirs:     []string{"/usr/sbin", "/usr/local/sbin", "/opt/homebrew/opt/mariadb/bin"},
		prepare: func(programs []string, dir string) []string {
			return []string{programs[0], "--no-defaults", "--datadir=" + dir, "--auth-root-authentication-method=normal", "--skip-test-db"}
		},
		serve: func(programs []string, dir string, port int) []string {
			return []string{programs[1], "--no-defaults", "--datadir=" + dir, "--bind-address=127.0.0.1", "--port=" + strconv.Itoa(port),
				"--socket=" + filepath.Join(dir, "socket"), "--pid-file=" + filepath.Join(dir, "pid"), "--max-connections=200"}
		},
		quick: []string{"--innodb-flush-log-at-trx-commit=2"},
		url:   func(port int) string { return fmt.Sprintf("mysql://root@127.0.0.1:%d/mysql", port) },
	}
}
