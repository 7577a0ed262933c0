// SPDX-License-Identifier: Apache-2.0

package sidecar_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"diwan.dev/diwan/internal/tuning/collector"
	"diwan.dev/diwan/internal/tuning/collector/entry"
	"diwan.dev/diwan/internal/tuning/collector/sidecar"
	"diwan.dev/diwan/internal/tuning/dbmanager/remotestore"
	"diwan.dev/diwan/observation"
	"diwan.dev/diwan/observation/memory"
)

// moody is a store that fails as long as it is told to.
type moody struct {
	observation.Store
	failure atomic.Pointer[error]
}

func (m *moody) fail(err error) { m.failure.Store(&err) }

func (m *moody) Append(ctx context.Context, t observation.Trial, b observation.Batch) error {
	if err := m.failure.Load(); err != nil && *err != nil {
		return *err
	}
	return m.Store.Append(ctx, t, b)
}

func (m *moody) Offset(ctx context.Context, t observation.Trial, source string) (int64, error) {
	if err := m.failure.Load(); err != nil && *err != nil {
		return 0, *err
	}
	return m.Store.Offset(ctx, t, source)
}

// bench is a collector and the directory that it shares with a program which
// the test plays.
type bench struct {
	t     *testing.T
	dir   entry.Dir
	store *moody
	trial observation.Trial
	out   lockedBuffer
	log   lockedBuffer
	stop  context.CancelFunc
	done  chan error
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, dir: entry.Dir(t.TempDir()), store: &moody{Store: memory.New()}, trial: observation.Trial{Namespace: "ns", Name: "trial"}}
	t.Cleanup(func() { b.end() })
	return b
}

// begin runs a collector, also another one after the end of the last.
func (b *bench) begin() {
	var ctx context.Context
	ctx, b.stop = context.WithCancel(b.t.Context())
	b.done = make(chan error, 1)
	config := sidecar.Config{Dir: b.dir, Spec: collector.Spec{Trial: b.trial, Kind: collector.StdOut, Metrics: []string{"loss"}, Container: "main"}}
	go func(done chan<- error) {
		done <- sidecar.Run(ctx, context.WithoutCancel(b.t.Context()), config, sidecar.Pod{UID: "u"}, b.store, &b.out, &b.log)
	}(b.done)
}

func (b *bench) end() {
	if b.stop == nil {
		return
	}
	b.stop()
	b.stop = nil
	if err := <-b.done; err != nil {
		b.t.Errorf("Run() = %v", err)
	}
}

func (b *bench) prints(text string) {
	b.t.Helper()
	f, err := os.OpenFile(b.dir.Output(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// ended says that a run of the program has ended, as package entry does.
func (b *bench) ended(run string) {
	b.t.Helper()
	if err := os.WriteFile(string(b.dir)+"/ended", []byte(run+"\n"), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) stored() string {
	text, _ := os.ReadFile(string(b.dir) + "/stored")
	return string(bytes.TrimSpace(text))
}

func (b *bench) values() []string {
	b.t.Helper()
	points, err := b.store.Points(b.t.Context(), b.trial, observation.Query{})
	if err != nil {
		b.t.Fatal(err)
	}
	var values []string
	for _, p := range points {
		values = append(values, p.Value)
	}
	return values
}

func (b *bench) until(what string, ok func() bool) {
	b.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatalf("%s: it does not come to that; stored %q, log %s", what, b.stored(), b.log.String())
		}
	}
}

// TestProgramRunsTwice follows two runs of a container.
func TestProgramRunsTwice(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.begin()
	b.prints("loss=1\nloss=2")
	b.until("points while it runs", func() bool { return slices.Equal(b.values(), []string{"1"}) })
	if b.stored() != "" {
		t.Errorf("run %q is stored before one has ended", b.stored())
	}
	b.ended("first")
	b.until("the last line", func() bool { return b.stored() == "first" })
	if got := b.values(); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("when the first run is stored, the points are %q", got)
	}
	b.prints("\nloss=3\n")
	b.ended("second")
	b.until("the second run", func() bool { return b.stored() == "second" })
	b.end()
	if got := b.values(); !slices.Equal(got, []string{"1", "2", "3"}) {
		t.Errorf("the points are %q", got)
	}
	if got := b.out.String(); got != "loss=1\nloss=2\nloss=3\n" {
		t.Errorf("it shows %q", got)
	}
}

// TestStoreAway has the program end while the store is away, and the collector
// killed meanwhile: the program's container waits, and nothing is lost.
func TestStoreAway(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.begin()
	b.prints("loss=1\n")
	b.until("the first point", func() bool { return len(b.values()) == 1 })
	b.store.fail(errors.New("away"))
	b.prints("loss=2\nloss=3")
	b.ended("run")
	b.until("a complaint", func() bool { return bytes.Contains([]byte(b.log.String()), []byte("away")) })
	if b.stored() != "" {
		t.Error("it says that all is stored")
	}
	b.store.fail(nil)
	b.until("all", func() bool { return b.stored() == "run" })
	b.end()
	b.begin() // another collector finds that there is nothing to do
	b.end()
	if got := b.values(); !slices.Equal(got, []string{"1", "2", "3"}) {
		t.Errorf("the points are %q", got)
	}
}

// TestTrialEnded wants a collector that nobody listens to to hold up nobody.
func TestTrialEnded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.store.fail(fmt.Errorf("%w: it is over", remotestore.ErrEnded))
	b.begin()
	b.prints("loss=1\n")
	b.ended("run")
	b.until("consent", func() bool { return b.stored() == "run" })
}

// TestNothingToRead refuses trials that report by themselves.
func TestNothingToRead(t *testing.T) {
	t.Parallel()
	config := sidecar.Config{Spec: collector.Spec{Kind: collector.Push}}
	if err := sidecar.Run(t.Context(), t.Context(), config, sidecar.Pod{}, memory.New(), &bytes.Buffer{}, &bytes.Buffer{}); err == nil {
		t.Error("it collects nothing without a word")
	}
	if _, err := sidecar.Parse("{"); err == nil {
		t.Error("half a configuration is one")
	}
}

// lockedBuffer may be read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// plaintive is a store that hears warnings when it is not away.
type plaintive struct {
	*moody
	heard lockedBuffer
}

func (p *plaintive) Warn(_ context.Context, t observation.Trial, message string) error {
	if err := p.failure.Load(); err != nil && *err != nil {
		return *err
	}
	_, err := fmt.Fprintf(&p.heard, "%s: %s\n", t, message)
	return err
}

// TestWarnings wants what is wrong with the metrics to be told to the users of
// the trial before it ends, and once, also where the store was away meanwhile.
func TestWarnings(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	store := &plaintive{moody: b.store}
	store.fail(errors.New("away"))
	config := sidecar.Config{Dir: b.dir, Spec: collector.Spec{
		Trial: b.trial, Kind: collector.Events, Path: t.TempDir(), Metrics: []string{"loss"}, Container: "main",
	}}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- sidecar.Run(ctx, context.WithoutCancel(ctx), config, sidecar.Pod{UID: "u"}, store, &b.out, &b.log)
	}()
	b.ended("run")
	store.fail(nil)
	b.until("consent", func() bool { return b.stored() == "run" })
	heard := store.heard.String()
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := strings.Count(heard, "ns/trial: "); n != 1 || !strings.Contains(heard, "no event file") {
		t.Errorf("when the trial ends, its users have heard %d warnings: %q\nlog: %s", n, heard, b.log.String())
	}
}
