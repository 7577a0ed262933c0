// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/platform/node/cgroup"
	"diwan.dev/diwan/internal/platform/node/container"
	"diwan.dev/diwan/internal/platform/node/rootless"
	"diwan.dev/diwan/internal/platform/node/runstate"
)

// Runtime runs containers of images. It implements container.Runtime.
type Runtime struct {
	cfg      Config
	groups   *cgroup.Groups
	ordinary bool // whether runs need user namespaces of their own
	program  *os.File
	looked   sync.Once
	overlay  error // why there are no overlays, once it was looked

	sharing sync.Mutex // held while a Pod's process namespace is made or given up

	closing chan struct{}
	once    sync.Once
	live    sync.WaitGroup // the goroutines that wait for adopted runs
}

var _ container.Runtime = (*Runtime)(nil)

// New returns a runtime on the state in cfg.Dir, which it creates. See Allowed.
func New(cfg Config) (*Runtime, error) {
	if !filepath.IsAbs(cfg.Dir) {
		return nil, fmt.Errorf("cannot use %q as the directory for containers: it is not an absolute path", cfg.Dir)
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot create the directory for containers: %w", err)
	}
	if cfg.AdoptPoll <= 0 {
		cfg.AdoptPoll = DefaultConfig("").AdoptPoll
	}
	r := &Runtime{cfg: cfg, closing: make(chan struct{})}
	_, r.ordinary = rootless.Owner()
	var err error
	if r.program, err = sealed(); err != nil {
		return nil, err
	}
	if !cfg.NoGroups {
		r.groups = cgroup.Open(cfg.Dir)
	}
	return r, nil
}

// Mounts reports whether volumes appear at their mount paths. They do.
func (r *Runtime) Mounts() bool { return true }

// Start starts a run. See container.Runtime. It returns when the program is executed.
func (r *Runtime) Start(ctx context.Context, spec container.Spec, output *os.File) (container.Run, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := check(&spec); err != nil {
		return nil, err
	}
	st := runstate.Of(r.cfg.Dir, spec.ID)
	if err := st.Create(); err != nil {
		return nil, fmt.Errorf("cannot start container %s: %w", spec.ID, err)
	}
	dirs, warnings := r.groups.Create(spec.ID, spec.Limits)
	run := &run{runtime: r, state: st, record: runstate.Record{Spec: spec, Groups: dirs}, warnings: warnings, done: make(chan struct{})}
	if spec.User != nil && len(spec.User.Groups) > 0 && r.ordinary {
		run.warnings = append(run.warnings, "supplementary groups, as of fsGroup, are not given: Diwan does not run as root")
	}
	if err := run.begin(ctx, output); err != nil {
		run.abandon()
		return nil, err
	}
	return run, nil
}

// check looks for what no runtime could do.
func check(spec *container.Spec) error {
	refuse := func(text string) error {
		return &container.StartError{Reason: "ContainerCannotRun", Code: 128, Err: errors.New(text)}
	}
	switch {
	case spec.Root == nil || len(spec.Root.Layers) == 0:
		return fmt.Errorf("cannot start container %s: it has no root file system", spec.ID)
	case spec.Security == nil:
		return fmt.Errorf("cannot start container %s: nothing says what it may do", spec.ID)
	case len(spec.Args) == 0 || spec.Args[0] == "":
		return refuse("cannot start a container without a command")
	case !filepath.IsAbs(spec.Dir):
		return refuse(fmt.Sprintf("cannot start a container in the working directory %q: it is not absolute", spec.Dir))
	}
	if u := spec.User; u != nil {
		for _, id := range append([]int64{u.UID, u.GID}, u.Groups...) {
			if id < 0 || id > maxID {
				return refuse(fmt.Sprintf("cannot start a container with the user or group %d: ids are 0 to %d", id, maxID))
			}
		}
	}
	return nil
}

// maxID is the largest id that Kubernetes gives.
const maxID = 1<<31 - 1

// Recover finds what an earlier runtime left. See container.Runtime.
func (r *Runtime) Recover(ctx context.Context) ([]container.Run, error) {
	states, err := runstate.List(r.cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("cannot list the containers in %s: %w", r.cfg.Dir, err)
	}
	var runs []container.Run
	var known []string
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
			known = append(known, run.record.Groups...)
		}
	}
	r.groups.Tidy(known)
	pods, _ := filepath.Glob(filepath.Join(r.cfg.Dir, "*"))
	for _, pod := range pods {
		if err := r.leavePod(pod); err != nil {
			return nil, err
		}
	}
	return runs, nil
}

// recover looks at one directory. Where the program never started, or the record
// was lost with the machine's power and nothing runs, nothing is to be taken
// over.
func (r *Runtime) recover(ctx context.Context, st runstate.Dir) (*run, error) {
	rec, started, err := st.Read()
	if err != nil {
		saw, lookErr := st.Look()
		if lookErr == nil && !saw.Running {
			return nil, r.forget(st)
		}
		return nil, errors.Join(err, lookErr)
	}
	if _, err := os.Stat(st.Path("run")); errors.Is(err, fs.ErrNotExist) {
		r.groups.Remove(rec.Groups)
		return nil, r.forget(st)
	}
	run := &run{runtime: r, state: st, record: rec, started: started, done: make(chan struct{})}
	saw, err := st.Settle(ctx)
	if err != nil {
		return nil, err
	}
	run.joined = rec.Spec.Among != nil || rec.Spec.SharesProcesses
	run.pid, run.began = saw.PID, saw.Began
	run.remember()
	if saw.Running {
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
	r.program.Close()
	return nil
}

// discard removes the directory of a run with what its program wrote, whose directories may
// forbid it even to their owner.
func discard(st runstate.Dir) error {
	err := os.RemoveAll(string(st))
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	filepath.WalkDir(string(st), func(path string, entry fs.DirEntry, _ error) error {
		if entry != nil && entry.IsDir() {
			unix.Fchmodat(unix.AT_FDCWD, path, 0o700, 0)
		}
		return nil
	})
	return os.RemoveAll(string(st))
}
