// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// ErrUnknownFormat is wrapped by errors about files that are no model of a known format.
var ErrUnknownFormat = errors.New("not a model of a known format")

// ErrUnsupported is wrapped by errors about models whose format is known and not readable.
var ErrUnsupported = errors.New("this format cannot be read")

// Error says what is wrong with a model, and where.
type Error struct {
	// File is the file, relative to the root that was read.
	File string
	// Member is the member of an archive, "" for the file itself.
	Member string
	// Offset is the byte of the file or member at which something is wrong, -1 if
	// that is not known.
	Offset int64
	// Err is what is wrong.
	Err error
}

// Error names the file, the place and the problem. It is one line of at most some 1,300
// characters, whatever the file and its names hold.
func (e *Error) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "cannot read %.200s", e.File)
	if e.Member != "" {
		fmt.Fprintf(&text, ", member %.100q", e.Member)
	}
	if e.Offset >= 0 {
		fmt.Fprintf(&text, ", at byte %d", e.Offset)
	}
	fmt.Fprintf(&text, ": %.1000s", e.Err)
	return printable(text.String())
}

// printable makes of any bytes a line of text: what a file is called and holds must not
// reach a terminal as it is.
func printable(text string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(text, "\ufffd"))
}

// Unwrap is the problem.
func (e *Error) Unwrap() error { return e.Err }
