// SPDX-License-Identifier: Apache-2.0

package stores

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
)

// maxLocation bounds the bytes of a location that a file holds.
const maxLocation = 64 << 10

// Resolve returns the location that a setting names: the setting itself; the
// first line of a file, for @FILE; or for katib: the database that Katib's
// environment variables name, which env reads.
func Resolve(setting string, env func(string) string) (string, error) {
	location := setting
	if file, ok := strings.CutPrefix(setting, "@"); ok {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("cannot read the location of the observation store: %w", err)
		}
		if len(text) > maxLocation {
			return "", fmt.Errorf("cannot read the location of the observation store: %s is not a file with one line", file)
		}
		location, _, _ = strings.Cut(strings.TrimSpace(string(text)), "\n")
		location = strings.TrimSpace(location)
	}
	if location == "katib:" {
		var err error
		if location, err = katib(env); err != nil {
			return "", err
		}
	}
	return location, Check(location)
}

// katib is the location that the environment variables of Katib's DB manager
// name, with its defaults.
func katib(env func(string) string) (string, error) {
	or := func(name, otherwise string) string { return cmp.Or(env(name), otherwise) }
	var u url.URL
	switch kind := env("DB_NAME"); kind {
	case "mysql":
		u = url.URL{
			Scheme: "mysql", User: url.UserPassword(or("DB_USER", "root"), env("DB_PASSWORD")),
			Host: net.JoinHostPort(or("KATIB_MYSQL_DB_HOST", "katib-mysql"), or("KATIB_MYSQL_DB_PORT", "3306")),
			Path: "/" + or("KATIB_MYSQL_DB_DATABASE", "katib"),
		}
	case "postgres":
		u = url.URL{
			Scheme: "postgres", User: url.UserPassword(or("DB_USER", "katib"), env("DB_PASSWORD")),
			Host:     net.JoinHostPort(or("KATIB_POSTGRESQL_DB_HOST", "katib-postgres"), or("KATIB_POSTGRESQL_DB_PORT", "5432")),
			Path:     "/" + or("KATIB_POSTGRESQL_DB_DATABASE", "katib"),
			RawQuery: url.Values{"sslmode": {or("KATIB_POSTGRESQL_SSL_MODE", "disable")}}.Encode(),
		}
	default:
		return "", fmt.Errorf("cannot use store katib: the variable DB_NAME is %q: want mysql or postgres", kind)
	}
	return u.String(), nil
}
