// SPDX-License-Identifier: Apache-2.0

package observation

import (
	"errors"
	"fmt"
)

var (
	// ErrClosed is returned by the methods of a store that was closed.
	ErrClosed = errors.New("observation store is closed")

	// ErrFull is wrapped by the errors of a store that has no space left. What
	// was stored stays readable; appending works again once there is space.
	ErrFull = errors.New("no space left for observations")

	// ErrCorrupt is wrapped by the errors of a store whose file is corrupt or
	// is not a store. A store never replaces such a file by itself.
	ErrCorrupt = errors.New("observation store is damaged")

	// ErrUnavailable is wrapped by the error of opening a store whose server does
	// not answer now and may do later: it starts or stops, nothing listens at its
	// address, or it has no connection to spare.
	ErrUnavailable = errors.New("observation store is unavailable")

	// ErrNewer is wrapped by the error of opening a store that a later version
	// of this program wrote.
	ErrNewer = errors.New("observation store was written by a later version")
)

// OffsetError says that a batch does not begin where its source's last one
// ended. Nothing was stored.
type OffsetError struct {
	// Trial and Source name the source.
	Trial  Trial
	Source string
	// Have is the offset up to which the source is stored, Got the one at
	// which the refused batch begins.
	Have, Got int64
}

// Error implements error.
func (e *OffsetError) Error() string {
	return fmt.Sprintf("cannot append to source %s of trial %s: batch begins at byte %d, but the source is stored up to byte %d",
		e.Source, e.Trial, e.Got, e.Have)
}
