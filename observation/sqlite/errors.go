// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"diwan.dev/diwan/observation"
)

// explain adds an explanation and a hint to a database error. Other errors it
// returns as they are.
func explain(err error) error {
	var coded *sqlite.Error
	if !errors.As(err, &coded) {
		if errors.Is(err, syscall.ENOSPC) {
			return fmt.Errorf("%w: %w", observation.ErrFull, err)
		}
		return err
	}
	switch coded.Code() & 0xff { // the rest of the code is detail
	case sqlite3.SQLITE_FULL:
		return fmt.Errorf("%w: %w; free some space on its disk", observation.ErrFull, err)
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%w: %w; restore the file from a backup, or move it away to start with an empty store", observation.ErrCorrupt, err)
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		return fmt.Errorf("%w: %w; make the file and its directory writable", fs.ErrPermission, err)
	}
	return err
}
