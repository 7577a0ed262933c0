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

	"diwan.dev/diwan/internal/platform/node/cgroup"
	"diwan.dev/diwan/internal/platform/node/container"
	"diwan.dev/diwan/internal/platform/node/runstate"
)

// Config configures a Runtime.
type Config struct {
	// Dir holds the state of runs: Dir/<pod>/run.<container>.<attempt>. It is
	// absolute. One process at a time uses it.
	Dir string
	// Keeper is the binary that calls keeper.Main under the name keeper.Name, for
	// runs with a standard input or a terminal. Empty: those cannot start.
	Keeper string
	// AdoptPoll is how often the end of an adopted run is looked for. Runs that
	// this process started are waited for and cost no polling. Default 50 ms.
	AdoptPoll time.Duration
	// NoGroups leaves cgroups alone: there are then no limits.
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
	groups *cgroup.Groups

	closing chan struct{}
	once    sync.Once
	live    sync.WaitGroup // the goroutines that wait for adopted runs
}

var _ container.Runtime = (*Runtime)(nil)

// New returns a runtime on the state in cfg.Dir, which it creates.
func New(cfg Config) (*Runtime, error) {
	if !filepath.IsAbs(cfg.Dir) {
		return nil, fmt.Errorf("cannot use %q as the directory for runs: it is not an absolute path", cfg.Dir)
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot create the directory for runs: %w", err)
	}
	if cfg.AdoptPoll <= 0 {
		cfg.AdoptPoll = DefaultConfig("").AdoptPoll
	}
	r := &Runtime{
		cfg:     cfg,
		closing: make(chan struct{}),
	}
	if !cfg.NoNamespaces {
		r.spaces = canUnshare()
	}
	if !cfg.NoGroups {
		r.groups = cgroup.Open(cfg.Dir)
	}
	return r, nil
}

// Mounts reports whether volumes appear at their mount paths.
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
	st := runstate.Of(r.cfg.Dir, spec.ID)
	if err := st.Create(); err != nil {
		return nil, fmt.Errorf("cannot start container %s: %w", spec.ID, err)
	}
	dirs, warnings := r.groups.Create(spec.ID, spec.Limits)
	run := &run{runtime: r, state: st, record: runstate.Record{Spec: spec, Groups: dirs}, warnings: warnings, done: make(chan struct{})}
	if err := st.Write(run.record); err != nil {
		run.abandon()
		return nil, fmt.Errorf("cannot start container %s: %w", spec.ID, err)
	}
	file, err := st.Lock()
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
	states, err := runstate.List(r.cfg.Dir)
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
			return nil, fmt.Errorf("cannot recover the container in %s: %w", string(st), err)
		}
		if run != nil {
			runs = append(runs, run)
		}
	}
	var known []string
	for _, found := range runs {
		known = append(known, found.(*run).record.Groups...)
	}
	r.groups.Tidy(known)
	return runs, nil
}

// recover looks at one directory. Where the program never started, or the record
// was lost with the machine's power and nothing runs, nothing is to be taken
// over.
func (r *Runtime) recover(ctx context.Context, st runstate.Dir) (container.Run, error) {
	rec, started, err := st.Read()
	if err != nil {
		saw, lookErr := st.Look()
		if lookErr == nil && !saw.Running {
			return nil, os.RemoveAll(string(st))
		}
		return nil, errors.Join(err, lookErr)
	}
	if _, err := os.Stat(st.Path("run")); errors.Is(err, fs.ErrNotExist) {
		r.groups.Remove(rec.Groups)
		release(rec.Spec.Mounts)
		return nil, os.RemoveAll(string(st))
	}
	run := &run{runtime: r, state: st, record: rec, started: started, done: make(chan struct{})}
	saw, err := st.Settle(ctx)
	if err != nil {
		return nil, err
	}
	if saw.Running {
		run.pid = saw.PID
		r.live.Go(run.watch)
		return run, nil
	}
	run.finish(saw)
	return run, nil
}

// Close stops watching runs. Runs continue; the goroutines that wait for runs
// of this process end with them.
func (r *Runtime) Close() error {
	r.once.Do(func() { close(r.closing) })
	r.live.Wait()
	r.groups.Close()
	return nil
}
