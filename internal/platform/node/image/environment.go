// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"fmt"
)

// Environment is the environment of an image on this machine.
type Environment struct {
	// Image is the name that was resolved.
	Image string
	// ID identifies the mapping: it changes when the entry changes. The node
	// reports it as imageID.
	ID string
	// PathDirs go before the PATH of the container, first one first.
	PathDirs []string
	// Env are variables that the container's own env overrides.
	Env map[string]string
	// Mounts maps absolute container paths to absolute host paths.
	Mounts map[string]string
	// Command is the default command with arguments: the image's entrypoint. It
	// is nil when the entry has none.
	Command []string
	// Args are the default arguments: those of a container that sets neither a
	// command nor arguments.
	Args []string
	// WorkingDir is the default working directory; "" when the entry has none.
	WorkingDir string

	check   func() error
	ready   func() bool
	prepare func(ctx context.Context, progress func(line string)) error
}

// Prepare prepares the environment, once for all containers that use it, and returns at once
// if it is ready. It may take minutes (to install a Python environment); progress, which may
// be nil, receives updates. It may be called from several goroutines and processes: one
// works, the others wait.
func (e *Environment) Prepare(ctx context.Context, progress func(line string)) error {
	if e.prepare == nil {
		return nil
	}
	if progress == nil {
		progress = func(string) {}
	}
	return e.prepare(ctx, progress)
}

// Check reports what [Environment.Prepare] would lack on this machine, as far as
// that can be known without doing its work.
func (e *Environment) Check() error {
	if e.check == nil {
		return nil
	}
	return e.check()
}

// Ready reports whether [Environment.Prepare] has nothing to do, so that the
// environment's programs exist.
func (e *Environment) Ready() bool { return e.ready == nil || e.ready() }

// UnmappedError says that a container has neither a command nor an image with a
// command on this machine.
type UnmappedError struct {
	// Image is the container's image.
	Image string
	// Mapped says that the image has an entry, which lacks a command.
	Mapped bool
}

// Error says what the user can do.
func (e *UnmappedError) Error() string {
	why := "it is not mapped to a program on this machine"
	if e.Mapped {
		why = "its entry in the image table has no command"
	}
	return fmt.Sprintf("cannot run image %s: %s, and the container has no command: set the container's command (kubectl run: --command before --), or map the image with: diwan images map %s --command PROGRAM",
		e.Image, why, e.Image)
}
