// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// Host is the name of an image that stands for this machine: its containers are processes
// with the programs that are installed here.
const Host = "diwan.dev/host"

// builtinDiwan is the built-in program: this binary.
const builtinDiwan = "diwan"

// BuiltIn is the Entry of an image for which this binary stands, run with arguments.
func BuiltIn(image string, args ...string) Entry {
	e := Entry{Image: image, Builtin: builtinDiwan}
	if len(args) > 0 {
		e.Command = append([]string{builtinDiwan}, args...)
	}
	return e
}

// Config configures a Table.
type Config struct {
	// Files are the tables to read, those that win first. One that does not
	// exist is empty until it does.
	Files []string
	// Dir is where environments are built; it must be on a disk that allows
	// programs to run. Default: environments beside the first file.
	Dir string
	// Executable is this binary, which built-in images run. Default os.Executable.
	Executable string
	// BuiltIn are images that need no entry in a file. One there counts first, unless
	// it is * for all other images.
	BuiltIn []Entry
	// Log is told when a changed table cannot be read; the zero Logger is silent.
	Log logr.Logger
}

// Default returns the configuration of a home directory, with images that need no
// entry.
func Default(home string, builtIn ...Entry) Config {
	return Config{
		BuiltIn: builtIn,
		Files:   []string{filepath.Join(home, "images.yaml")},
		Dir:     filepath.Join(home, "environments"),
	}
}

// Table is the image table. Its methods may be called from several goroutines.
type Table struct {
	cfg      Config
	builders builders

	mu      sync.Mutex
	stamps  []stamp
	entries []Entry
}

// stamp reports whether a file is unchanged since it was read.
type stamp struct {
	modified time.Time
	size     int64
	exists   bool
}

// Open reads the tables. A table that cannot be read is an error now; one that
// becomes unreadable later leaves the last good entries in force.
func Open(cfg Config) (*Table, error) {
	if cfg.Dir == "" {
		if len(cfg.Files) == 0 {
			return nil, errors.New("cannot open image table: neither a file nor a directory for environments")
		}
		cfg.Dir = filepath.Join(filepath.Dir(cfg.Files[0]), "environments")
	}
	if cfg.Executable == "" {
		exe, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("cannot find this program's own file: %w", err)
		}
		cfg.Executable = exe
	}
	t := &Table{cfg: cfg}
	if err := t.refresh(); err != nil {
		return nil, err
	}
	return t, nil
}

// Executable is this binary, which built-in images run.
func (t *Table) Executable() string { return t.cfg.Executable }

// Entries returns the entries in force with absolute host paths, those that win first.
func (t *Table) Entries() []Entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reload()
	return append([]Entry(nil), t.entries...)
}

// Resolve implements Resolver. It looks at the files' times, so a changed table
// takes effect with the next container.
func (t *Table) Resolve(image string, hasCommand, argsRun bool) (*Environment, error) {
	t.mu.Lock()
	t.reload()
	entry := t.find(image)
	t.mu.Unlock()
	if entry == nil || !entry.maps() {
		// Of another image nobody knows whether its arguments are a program.
		if !hasCommand && !(argsRun && repository(image) == Host) {
			return nil, &UnmappedError{Image: image}
		}
		return &Environment{Image: image, ID: "host"}, nil
	}
	env, err := t.environment(image, entry)
	if err != nil {
		return nil, err
	}
	if !hasCommand && !argsRun && len(env.Command) == 0 {
		return nil, &UnmappedError{Image: image, Mapped: true}
	}
	return env, nil
}

// Entry implements Resolver.
func (t *Table) Entry(image string) *Entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reload()
	return t.find(image)
}

// find returns the entry that fits best, and among equals the first: one in a file, then a
// built-in one, then the file's * for all other images. t.mu is held.
func (t *Table) find(image string) *Entry {
	entry := bestMatch(t.entries, image)
	if entry != nil && entry.Image != "*" {
		return entry
	}
	if builtIn := bestMatch(t.builtIn(), image); builtIn != nil {
		return builtIn
	}
	if builtIn := bestMatch(t.builtIn(), repository(image)); builtIn != nil {
		builtIn.Image = repository(image) // a glob, whatever the tag
		return builtIn
	}
	return entry
}

// builtIn are the images that need no entry in a file.
func (t *Table) builtIn() []Entry {
	return append([]Entry{{Image: Host, Runtime: RuntimeProcess}, BuiltIn("diwan.dev/diwan")}, t.cfg.BuiltIn...)
}

// bestMatch returns a copy of the entry that fits best, and among equals the first.
func bestMatch(entries []Entry, image string) *Entry {
	best, rank := -1, noMatch
	for i := range entries {
		if r := match(entries[i].Image, image); r > rank {
			best, rank = i, r
		}
	}
	if best < 0 {
		return nil
	}
	e := entries[best]
	return &e
}

// reload reads the tables again when one has changed. t.mu is held.
func (t *Table) reload() {
	if err := t.refresh(); err != nil {
		t.cfg.Log.Error(err, "The image table is unchanged")
	}
}

// refresh reads the tables when one has changed. On an error the entries stay,
// and the files are not read again until they change.
func (t *Table) refresh() error {
	stamps := make([]stamp, len(t.cfg.Files))
	same := len(t.stamps) == len(stamps)
	for i, path := range t.cfg.Files {
		st, err := os.Stat(path)
		if err == nil {
			stamps[i] = stamp{st.ModTime(), st.Size(), true}
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot read image table: %w", err)
		}
		same = same && stamps[i] == t.stamps[i]
	}
	if same {
		return nil
	}
	t.stamps = stamps
	var entries []Entry
	for _, path := range t.cfg.Files {
		more, err := Load(path)
		if err != nil {
			return err
		}
		dir, err := filepath.Abs(filepath.Dir(path))
		if err != nil {
			return fmt.Errorf("cannot name directory of image table: %w", err)
		}
		for i := range more {
			more[i].resolvePaths(dir)
		}
		entries = append(entries, more...)
	}
	t.entries = entries
	return nil
}

// step is a part of [Environment.Prepare].
type step func(ctx context.Context, progress func(line string)) error

// environment converts an entry for the node.
func (t *Table) environment(image string, e *Entry) (*Environment, error) {
	env := &Environment{
		Image: image, PathDirs: e.Path, Env: e.Env, Mounts: e.Files,
		Command: e.Command, WorkingDir: e.WorkingDir,
	}
	id, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("cannot name environment of image %s: %w", image, err)
	}
	sum := sha256.Sum256(id)
	env.ID = "images.yaml@" + hex.EncodeToString(sum[:8])
	env.check = func() error { return checkFiles(e) }
	steps := []step{func(context.Context, func(string)) error { return checkFiles(e) }}
	if e.Builtin != "" {
		env.ready = func() bool { return false } // a link that is made when it is used
		bin := filepath.Join(t.cfg.Dir, "bin")
		env.PathDirs = append([]string{bin}, env.PathDirs...)
		if env.Command == nil {
			env.Command = []string{t.cfg.Executable}
		}
		steps = append(steps, func(context.Context, func(string)) error {
			return Link(t.cfg.Executable, filepath.Join(bin, builtinDiwan))
		})
	}
	if e.Python != nil {
		ready, err := t.python(e, env)
		if err != nil {
			return nil, err
		}
		if ready != nil {
			steps = append(steps, ready)
		}
	}
	env.prepare = func(ctx context.Context, progress func(string)) error {
		for _, step := range steps {
			if err := step(ctx, progress); err != nil {
				return fmt.Errorf("cannot prepare image %s: %w", image, err)
			}
		}
		return nil
	}
	return env, nil
}

func withDefaults(env, defaults map[string]string) map[string]string {
	all := make(map[string]string, len(env)+len(defaults))
	for k, v := range defaults {
		all[k] = v
	}
	for k, v := range env {
		all[k] = v
	}
	return all
}

// checkFiles reports the host paths of an entry that do not exist.
func checkFiles(e *Entry) error {
	var errs []error
	for at, from := range e.Files {
		if _, err := os.Stat(from); err != nil {
			errs = append(errs, fmt.Errorf("the entry %s maps %s: %w", e.Image, at, err))
		}
	}
	return errors.Join(errs...)
}

// Link creates a symbolic link at path, replacing one with another target.
func Link(to, path string) error {
	if at, err := os.Readlink(path); err == nil && at == to {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("cannot link %s: %w", path, err)
	}
	temporary := fmt.Sprintf("%s.%d", path, time.Now().UnixNano())
	if err := os.Symlink(to, temporary); err != nil {
		return fmt.Errorf("cannot link %s: %w", path, err)
	}
	if err := os.Rename(temporary, path); err != nil {
		os.Remove(temporary)
		return fmt.Errorf("cannot link %s: %w", path, err)
	}
	return nil
}
