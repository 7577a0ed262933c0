// SPDX-License-Identifier: Apache-2.0

package database

import (
	"strings"
	"testing"
)

// MariaDB removes the temporary tables of other servers in its directory when
// it starts.
func TestTemporaryFilesAreApart(t *testing.T) {
	t.Parallel()
	server := MariaDB().Lend(t)
	var dir string
	if err := SQL(t, server.URL()).QueryRowContext(t.Context(), "SELECT @@tmpdir").Scan(&dir); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(dir, server.dir) {
		t.Errorf("temporary files are in %s, where other servers' are, and not in %s", dir, server.dir)
	}
}
