// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// directory reads the TensorFlow event files in a directory tree, each as a
// separate stream.
type directory struct {
	config Config
	root   string // on this machine
	own    bool
	within string // Subject.Within
	inside string // in the container
	stream func(file string) *Stream
	warn   func(message string)
	seen   *tags
	stored func(ctx context.Context, metric string) (bool, error)

	files map[string]*tail // by path on this machine
	due   time.Time        // of the next walk
}

// directory returns the observer of the kind Events.
func (c *Collector) directory(spec *Spec, s Subject, stream func(file string, units framer, parser parser) *Stream) *directory {
	d := &directory{config: c.config, inside: path.Clean(spec.Path), warn: s.Warn, seen: newTags(spec.Metrics), stored: c.stored(spec.Trial), files: map[string]*tail{}}
	d.root, d.own = s.HostDirectory(d.inside)
	d.within = within(s, d.own)
	d.stream = func(file string) *Stream {
		told := false
		units := &records{max: c.config.MaxRecord, damaged: func(from, to int64) {
			if !told {
				told = true
				d.warn(fmt.Sprintf("event file %s is corrupt: bytes %d to %d are skipped, and any corrupt records after them", file, from, to))
			}
		}}
		return stream(file, units, &events{dir: path.Dir(file), seen: d.seen, warn: func(err error) {
			d.warn(fmt.Sprintf("event file %s: %v", file, err))
		}})
	}
	return d
}

// isEventFile recognizes event files by name, like TensorBoard.
func isEventFile(name string) bool { return strings.Contains(name, "tfevents") }

// walkShare bounds the time that walks take to a twentieth.
const walkShare = 20

// Look implements Observer.
func (d *directory) Look(ctx context.Context, now time.Time) error {
	if !now.Before(d.due) {
		began := time.Now()
		if err := d.walk(); err != nil {
			return err
		}
		d.due = now.Add(max(d.config.WalkInterval, walkShare*time.Since(began)))
	}
	return d.each(func(t *tail) error { return t.Look(ctx, now) })
}

// Finish implements Observer.
func (d *directory) Finish(ctx context.Context, now time.Time) error {
	if err := d.walk(); err != nil {
		return err
	}
	if err := d.each(func(t *tail) error { return t.Finish(ctx, now) }); err != nil {
		return err
	}
	return d.tell(ctx)
}

// tell warns that the objective is not among what was read, by this observer
// or by one before it.
func (d *directory) tell(ctx context.Context) error {
	objective, why := d.seen.missing()
	if why == "" {
		return nil
	}
	stored, err := d.stored(ctx, objective)
	switch {
	case err != nil:
		return err
	case stored:
	case len(d.files) == 0:
		d.warn("no event file in " + d.inside)
	default:
		d.warn(fmt.Sprintf("%d event files in %s: %s", len(d.files), d.inside, why))
	}
	return nil
}

// Discard implements Observer.
func (d *directory) Discard(ctx context.Context) error {
	if err := d.walk(); err != nil {
		return err
	}
	err := d.each(func(t *tail) error { return t.Discard(ctx) })
	if err == nil {
		clear(d.files)
	}
	return err
}

// Needs implements Observer.
func (d *directory) Needs() int64 { return math.MaxInt64 }

// Close implements Observer.
func (d *directory) Close() {}

// each does something with every file, in the order of their names: one that
// fails does not keep others from being read.
func (d *directory) each(do func(*tail) error) error {
	var errs []error
	for _, file := range slices.Sorted(maps.Keys(d.files)) {
		if err := do(d.files[file]); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// open opens the directory, from within that which links must not leave, if any.
func (d *directory) open() (_ fs.FS, done func(), err error) {
	if d.within == "" {
		return os.DirFS(d.root), func() {}, nil
	}
	name, err := filepath.Rel(d.within, d.root)
	if err != nil {
		return nil, nil, err
	}
	outer, err := os.OpenRoot(d.within)
	if err != nil {
		return nil, nil, err
	}
	defer outer.Close()
	root, err := outer.OpenRoot(name)
	if err != nil {
		return nil, nil, err
	}
	return root.FS(), func() { root.Close() }, nil
}

// within is the directory that links of an own path must not leave; "" is none.
func within(s Subject, own bool) string {
	if own {
		return s.Within
	}
	return ""
}

// walk looks for new files. What cannot be listed is left for the next walk.
func (d *directory) walk() error {
	files, done, err := d.open()
	if err != nil {
		return nil
	}
	defer done()
	entries := 0
	return fs.WalkDir(files, ".", func(rel string, entry fs.DirEntry, err error) error {
		file := filepath.Join(d.root, filepath.FromSlash(rel))
		if entries++; entries > d.config.MaxEntries {
			d.warn(fmt.Sprintf("%s has more than %d files and directories: those after %s are ignored", d.inside, d.config.MaxEntries, path.Base(file)))
			return filepath.SkipAll
		}
		if err != nil || !entry.Type().IsRegular() || !isEventFile(entry.Name()) || d.files[file] != nil {
			return nil
		}
		if len(d.files) >= d.config.MaxFiles {
			d.warn(fmt.Sprintf("%s has more than %d event files: %s and others are ignored", d.inside, d.config.MaxFiles, entry.Name()))
			return filepath.SkipAll
		}
		name := path.Join(d.inside, rel)
		if !utf8.ValidString(name) {
			d.warn(fmt.Sprintf("event file %q is ignored: its name must be UTF-8", name))
			return nil
		}
		d.files[file] = &tail{stream: d.stream(name), path: file, own: d.own, within: d.within}
		return nil
	})
}
