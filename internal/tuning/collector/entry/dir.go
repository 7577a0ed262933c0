// SPDX-License-Identifier: Apache-2.0

package entry

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Dir is the directory that the trial's container and the collector share. The
// two may be different users.
type Dir string

// Program is where Install puts this program.
func (d Dir) Program() string { return filepath.Join(string(d), "entry") }

// Output has the program's output, from all runs of its container.
func (d Dir) Output() string { return filepath.Join(string(d), "output") }

// ended and stored contain the name of a run: the last that has ended, and the
// last for which everything is stored.
func (d Dir) ended() string  { return filepath.Join(string(d), "ended") }
func (d Dir) stored() string { return filepath.Join(string(d), "stored") }

// Ended returns the name of the last run of the program that has ended, "" while
// none has.
func (d Dir) Ended() (string, error) { return readName(d.ended()) }

// Stored writes down that everything of a run is stored.
func (d Dir) Stored(run string) error { return writeName(d.stored(), run) }

// isStored reports whether everything of a run is stored.
func (d Dir) isStored(run string) (bool, error) {
	name, err := readName(d.stored())
	return name == run, err
}

func readName(path string) (string, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(text)), err
}

// writeName replaces a file at once, so that nobody reads half of it.
func writeName(path, name string) error {
	return replace(path, 0o644, func(f *os.File) error {
		_, err := f.WriteString(name + "\n")
		return err
	})
}

// replace recreates a file, for all users.
func replace(path string, mode fs.FileMode, write func(*os.File) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	err = errors.Join(write(f), f.Chmod(mode), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return nil
}

// Install copies the program at a path into the directory and creates the
// output file, unless it exists.
func (d Dir) Install(program string) error {
	from, err := os.Open(program)
	if err != nil {
		return fmt.Errorf("cannot install %s: %w", program, err)
	}
	defer from.Close()
	if err := replace(d.Program(), 0o755, func(f *os.File) error {
		_, err := f.ReadFrom(from)
		return err
	}); err != nil {
		return err
	}
	out, err := os.OpenFile(d.Output(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o666)
	if err != nil {
		return fmt.Errorf("cannot make the output file: %w", err)
	}
	defer out.Close()
	if err := out.Chmod(0o666); err != nil && !errors.Is(err, fs.ErrPermission) { // another user's of an earlier start
		return fmt.Errorf("cannot make the output file: %w", err)
	}
	return nil
}
