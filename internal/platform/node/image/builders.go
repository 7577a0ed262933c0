// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A build that failed is retried after a wait that doubles from the first
// to the last of these, as kubelets pull images.
const (
	firstWait = 10 * time.Second
	lastWait  = 5 * time.Minute
	// lockInterval is how often a lock of another process is tried.
	lockInterval = 100 * time.Millisecond
)

// builders sees to it that each environment has one builder in this process.
type builders struct {
	mu       sync.Mutex
	running  map[string]chan struct{} // by directory; closed when the build ends
	failures map[string]failure
	versions map[string]string // by interpreter
}

type failure struct {
	err  error
	wait time.Duration
	next time.Time
}

// build creates the environment unless it exists.
func (b *builders) build(ctx context.Context, v *venv, progress func(string)) error {
	for {
		if _, err := os.Stat(v.ready()); err == nil {
			return nil
		}
		b.mu.Lock()
		if f, ok := b.failures[v.dir]; ok && time.Now().Before(f.next) {
			b.mu.Unlock()
			return fmt.Errorf("%w\n(retrying in %s)", f.err, time.Until(f.next).Round(time.Second))
		}
		other, busy := b.running[v.dir]
		if !busy {
			break
		}
		b.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	done := make(chan struct{})
	if b.running == nil {
		b.running, b.failures = map[string]chan struct{}{}, map[string]failure{}
	}
	b.running[v.dir] = done
	b.mu.Unlock()

	err := b.alone(ctx, v, progress)

	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.running, v.dir)
	close(done)
	if err == nil {
		delete(b.failures, v.dir)
	} else if ctx.Err() == nil {
		wait := min(max(firstWait, 2*b.failures[v.dir].wait), lastWait)
		b.failures[v.dir] = failure{err: err, wait: wait, next: time.Now().Add(wait)}
	}
	return err
}

// alone builds while no other process does.
func (b *builders) alone(ctx context.Context, v *venv, progress func(string)) error {
	if err := os.MkdirAll(filepath.Dir(v.dir), 0o755); err != nil {
		return fmt.Errorf("cannot create directory of environments: %w", err)
	}
	lock, err := os.OpenFile(v.lock(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("cannot lock environment: %w", err)
	}
	defer lock.Close()
	if err := flock(ctx, lock, progress); err != nil {
		return fmt.Errorf("cannot lock environment: %w", err)
	}
	if _, err := os.Stat(v.ready()); err == nil {
		return nil // the other process has built it
	}
	progress("Building a Python environment in " + v.dir)
	return v.make(ctx, progress)
}

func flock(ctx context.Context, f *os.File, progress func(string)) error {
	ticker := time.NewTicker(lockInterval)
	defer ticker.Stop()
	for first := true; ; first = false {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return err
		}
		if first {
			progress("Waiting for another process that is building the same Python environment")
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// version is versionOf, asked once per interpreter.
func (b *builders) version(interpreter string) (string, error) {
	b.mu.Lock()
	version, ok := b.versions[interpreter]
	b.mu.Unlock()
	if ok {
		return version, nil
	}
	version, err := versionOf(interpreter)
	if err != nil {
		return "", err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.versions == nil {
		b.versions = map[string]string{}
	}
	b.versions[interpreter] = version
	return version, nil
}

// tail copies output to a log and line by line to progress, and keeps the last
// lines.
type tail struct {
	log      *os.File
	progress func(string)
	partial  []byte
	last     []string
}

const tailLines = 15

func (t *tail) Write(p []byte) (int, error) {
	if _, err := t.log.Write(p); err != nil {
		return 0, err
	}
	t.partial = append(t.partial, p...)
	for {
		i := bytes.IndexByte(t.partial, '\n')
		if i < 0 {
			return len(p), nil
		}
		t.line(string(t.partial[:i]))
		t.partial = t.partial[i+1:]
	}
}

func (t *tail) flush() {
	if len(t.partial) > 0 {
		t.line(string(t.partial))
		t.partial = nil
	}
}

func (t *tail) line(s string) {
	t.progress(s)
	if t.last = append(t.last, s); len(t.last) > tailLines {
		t.last = t.last[1:]
	}
}
