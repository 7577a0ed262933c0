// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"diwan.dev/diwan/internal/node/container"
)

// Config says where and how a Runtime works.
type Config struct {
	// Dir holds the state of runs: Dir/<pod>/run.<container>.<attempt>. It is
	// absolute. One process at a time uses it.
	Dir string
	// AdoptPoll is how often the end of an adopted run is looked for. Runs that
	// this process started are waited for and cost no polling. Default 50 ms.
	AdoptPoll time.Duration
	// NoGroups leaves control groups alone: there are then no limits.
	NoGroups bool
	// NoNamespaces gives runs no namespaces of their own even where they could
	// have them.
	NoNamespaces bool
}

// DefaultConfig is the configuration for the state directory dir.
func DefaultConfig(dir string) Config {
	return Config{Dir: dir, AdoptPoll: 50 * time.Millisecond}
}

// Runtime runs containers as processes. It implements container.Runtime.
type Runtime struct {
	cfg    Config
	spaces bool // whether runs have namespaces
	groups *groups
	points *mountpoints

	closing chan struct{}
	once    sync.Once
	live    sync.WaitGroup // the goroutines that wait for adopted runs
}

var _ container.Runtime = (*Runtime)(nil)

// New returns a runtime on the state in cfg.Dir, which it creates.
func New(cfg Config) (*Runtime, error) {
	if !filepath.IsAbs(cfg.Dir) {
		return nil, fmt.Errorf("cannot use %q as the directory of runs: it is not an absolute path", cfg.Dir)
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot create the directory of runs: %w", err)
	}
	if cfg.AdoptPoll <= 0 {
		cfg.AdoptPoll = DefaultConfig("").AdoptPoll
	}
	r := &Runtime{
		cfg:     cfg,
		points:  &mountpoints{file: filepath.Join(cfg.Dir, "mountpoints")},
		closing: make(chan struct{}),
	}
	if !cfg.NoNamespaces {
		r.spaces = canUnshare()
	}
	if !cfg.NoGroups {
		r.groups = openGroups(cfg.Dir)
	}
	return r, nil
}

// Mounts tells whether volumes appear at their mount paths.
func (r *Runtime) Mounts() bool { return r.spaces }

// Start starts a run. See container.Runtime.
func (r *Runtime) Start(ctx context.Context, spec container.Spec, output *os.File) (container.Run, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(spec.Args) == 0 {
		return nil, &container.StartError{Reason: "ContainerCannotRun", Code: 128, Err: errors.New("cannot start a container without a command")}
	}
	if !filepath.IsAbs(spec.Dir) {
		return nil, fmt.Errorf("cannot start container %s: its working directory %q is not absolute", spec.ID, spec.Dir)
	}
	st := stateOf(r.cfg.Dir, spec.ID)
	if err := st.create(); err != nil {
		return nil, fmt.Errorf("cannot start container %s: %w", spec.ID, err)
	}
	dirs, warnings := r.groups.create(spec.ID, spec.Limits)
	run := &run{runtime: r, state: st, record: record{Spec: spec, Groups: dirs}, warnings: warnings, done: make(chan struct{})}
	if err := st.write(run.record); err != nil {
		run.abandon()
		return nil, fmt.Errorf("cannot start container %s: %w", spec.ID, err)
	}
	file, err := st.lock()
	if err != nil {
		run.abandon()
		return nil, fmt.Errorf("cannot start container %s: %w", spec.ID, err)
	}
	defer file.Close() // the shim keeps its own
	run.started = time.Now()
	if err := run.spawn(file, output); err != nil {
		run.abandon()
		return nil, err
	}
	return run, nil
}

// Recover finds what an earlier runtime left. See container.Runtime.
func (r *Runtime) Recover(ctx context.Context) ([]container.Run, error) {
	states, err := list(r.cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("cannot list the runs in %s: %w", r.cfg.Dir, err)
	}
	var runs []container.Run
	for _, st := range states {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		run, err := r.recover(ctx, st)
		if err != nil {
			return nil, fmt.Errorf("cannot recover the container in %s: %w", st.dir, err)
		}
		if run != nil {
			runs = append(runs, run)
		}
	}
	return runs, nil
}

// recover looks at one directory. Where the program never started, or the record
// was lost with the machine's power and nothing runs, nothing is to be taken
// over.
func (r *Runtime) recover(ctx context.Context, st state) (container.Run, error) {
	rec, started, err := st.read()
	if err != nil {
		saw, lookErr := st.look()
		if lookErr == nil && !saw.running {
			return nil, os.RemoveAll(st.dir)
		}
		return nil, errors.Join(err, lookErr)
	}
	if _, err := os.Stat(st.path("run")); errors.Is(err, fs.ErrNotExist) {
		r.groups.remove(rec.Groups)
		return nil, os.RemoveAll(st.dir)
	}
	run := &run{runtime: r, state: st, record: rec, started: started, done: make(chan struct{})}
	saw, err := run.settle(ctx)
	if err != nil {
		return nil, err
	}
	if saw.running {
		run.pid = saw.pid
		r.live.Go(run.watch)
		return run, nil
	}
	run.finish(saw)
	return run, nil
}

// Close ends the watching of runs. Runs go on; the goroutines that wait for
// runs of this process end with them.
func (r *Runtime) Close() error {
	r.once.Do(func() { close(r.closing) })
	r.live.Wait()
	r.groups.close()
	states, err := list(r.cfg.Dir)
	if err != nil || len(states) > 0 {
		return err
	}
	return r.points.clear()
}
