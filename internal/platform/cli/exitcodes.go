// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"

	"diwan.dev/diwan/internal/platform/cli/manifest"
)

// The exit codes of diwan.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// usageError says that a command was called in a wrong way.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// Usagef says that a command was called in a wrong way.
func Usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// ExitError ends a command with a code and without a message: it has said all there is to say.
type ExitError struct{ Code int }

// Error says only with which code.
func (e *ExitError) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// errInterrupted is the cause of a context that the user ended.
var errInterrupted = errors.New("interrupted")

// exitCode is the code that an error of a command stands for.
func exitCode(err error) int {
	var (
		exit     *ExitError
		usage    *usageError
		notFound *manifest.NotFoundError
	)
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &exit):
		return exit.Code
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case errors.As(err, &usage), errors.As(err, &notFound):
		return exitUsage
	default:
		return exitFailed
	}
}
