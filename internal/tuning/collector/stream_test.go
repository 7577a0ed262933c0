// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/klog/v2"
	"pgregory.net/rapid"

	"diwan.dev/diwan/observation"
	"diwan.dev/diwan/observation/memory"
)

func trial() observation.Trial { return observation.Trial{Namespace: "default", Name: "trial"} }

// quietConfig has bounds of its own and a timer that does not fire.
func quietConfig() Config {
	return Config{Interval: time.Hour, MaxLine: 1 << 20, MaxPoints: 1000, MaxWaiting: 100, MaxBehind: 1 << 40}
}

func newStream(tb testing.TB, store observation.Store, config Config) *Stream {
	tb.Helper()
	units, p, others, err := (&Spec{Metrics: []string{"loss"}}).lines(config.MaxLine)
	if err != nil {
		tb.Fatal(err)
	}
	return &Stream{
		warn:   func(string) {},
		config: config, store: store, trial: trial(), source: "main", log: klog.Background(),
		parser: p, units: units, others: others,
	}
}

func stored(tb testing.TB, store observation.Store) []observation.Point {
	tb.Helper()
	points, err := store.Points(tb.Context(), trial(), observation.Query{})
	if err != nil {
		tb.Fatal(err)
	}
	return points
}

// want checks what is stored, as metric=value in order of time.
func want(tb testing.TB, store observation.Store, reason string, want []string) {
	tb.Helper()
	var got []string
	for _, p := range stored(tb, store) {
		got = append(got, p.Metric+"="+p.Value)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		tb.Errorf("%s -want, +got:\n%s", reason, diff)
	}
}

// finish ends the run that an observer observes.
func finish(tb testing.TB, o Observer, at time.Time) {
	tb.Helper()
	if err := o.Finish(tb.Context(), at); err != nil {
		tb.Fatal(err)
	}
	o.Close()
}

func values(points []observation.Point) []string {
	var texts []string
	for _, p := range points {
		texts = append(texts, p.Value)
	}
	return texts
}

func mustWrite(tb testing.TB, s *Stream, offset int, p string) {
	tb.Helper()
	if err := s.Write(tb.Context(), int64(offset), []byte(p), now()); err != nil {
		tb.Fatalf("Write(%d, %q): %v", offset, p, err)
	}
}

func mustFinish(tb testing.TB, s *Stream) {
	tb.Helper()
	if err := s.Finish(tb.Context()); err != nil {
		tb.Fatalf("Finish: %v", err)
	}
}

// output draws what a program might print.
func output(rt *rapid.T) []byte {
	line := rapid.OneOf(
		rapid.StringMatching(`(epoch [0-9] )?loss=[0-9]\.[0-9]{1,3}`),
		rapid.StringMatching(`[a-z =]{0,12}`),
		rapid.Just("loss="), rapid.Just(""), rapid.Just(strings.Repeat("loss=1 ", 30)), rapid.Just("\xff\x00"),
	)
	parts := rapid.SliceOf(rapid.Custom(func(rt *rapid.T) string {
		return line.Draw(rt, "line") + rapid.SampledFrom([]string{"\n", "\n", "\r\n", "\r"}).Draw(rt, "break")
	})).Draw(rt, "lines")
	return []byte(strings.Join(parts, "") + line.Draw(rt, "last"))
}

// whole returns the values that an output has, found without any pieces.
func whole(config Config, out []byte) []string {
	p, _ := newText([]string{"loss"}, nil, nil)
	var points []observation.Point
	for line := range bytes.SplitSeq(bytes.ReplaceAll(out, []byte("\r"), []byte("\n")), []byte("\n")) {
		points = p.parse(points, line[:min(len(line), config.MaxLine)], now())
	}
	return values(points)
}

// TestAnyPieces cuts an output into random pieces, and ends the process at
// random moments, once it is stored or never: the points are those of the
// whole output, each once.
func TestAnyPieces(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		config := quietConfig()
		config.MaxPoints = 1 << 20
		config.MaxWaiting = rapid.IntRange(1, 8).Draw(rt, "waiting")
		config.MaxLine = rapid.IntRange(8, 64).Draw(rt, "line")
		out, store := output(rt), memory.New()
		var s *Stream
		at := 0
		restart := func() {
			s = newStream(t, store, config)
			offset, err := s.Offset(t.Context())
			if err != nil || offset > int64(at) {
				rt.Fatalf("Offset after %d bytes: %d, %v", at, offset, err)
			}
			at = int(offset)
		}
		restart()
		for restarts := 0; at < len(out); {
			end := rapid.IntRange(at, len(out)).Draw(rt, "end")
			if err := s.Write(t.Context(), int64(at), out[at:end], now()); err != nil {
				rt.Fatal(err)
			}
			at = end
			switch rapid.IntRange(0, 5).Draw(rt, "then") {
			case 0:
				s.tick()
			case 1:
				if restarts++; restarts < 20 {
					restart()
				}
			}
		}
		mustFinish(t, s)
		if diff := cmp.Diff(whole(config, out), values(stored(t, store))); diff != "" {
			rt.Errorf("%q: -whole, +stored:\n%s", out, diff)
		}
	})
}

// TestTimer checks that points are stored while the program runs and prints
// nothing more.
func TestTimer(t *testing.T) {
	t.Parallel()
	config := quietConfig()
	config.Interval = time.Millisecond
	appended := make(chan observation.Batch, 10)
	s := newStream(t, spy{memory.New(), appended}, config)
	mustWrite(t, s, 0, "loss=1\nloss=2\nlo")
	batch := <-appended
	if batch.From != 0 || batch.To != 14 || len(batch.Points) != 2 {
		t.Errorf("stored %+v, want the two whole lines", batch)
	}
	mustWrite(t, s, 16, "ss=3\n")
	if batch = <-appended; batch.From != 14 || batch.To != 21 || len(batch.Points) != 1 {
		t.Errorf("stored %+v, want the third line", batch)
	}
}

// spy is a store that tells what was appended.
type spy struct {
	observation.Store
	appended chan<- observation.Batch
}

func (s spy) Append(ctx context.Context, t observation.Trial, b observation.Batch) error {
	err := s.Store.Append(ctx, t, b)
	s.appended <- b
	return err
}

// TestShortTrial checks that a trial of one breath costs one write to the
// store.
func TestShortTrial(t *testing.T) {
	t.Parallel()
	appended := make(chan observation.Batch, 10)
	s := newStream(t, spy{memory.New(), appended}, DefaultConfig())
	mustWrite(t, s, 0, "loss=1\n")
	mustWrite(t, s, 7, "loss=2")
	mustFinish(t, s)
	close(appended)
	var batches []observation.Batch
	for b := range appended {
		batches = append(batches, b)
	}
	if len(batches) != 1 || len(batches[0].Points) != 2 {
		t.Errorf("stored %+v, want both points in one batch", batches)
	}
}

// TestBehind checks that the stream that takes over has little to read again,
// of output without metrics too.
func TestBehind(t *testing.T) {
	t.Parallel()
	store, config := memory.New(), quietConfig()
	config.MaxBehind = 1000
	s := newStream(t, store, config)
	for offset := 0; offset < 10_000; offset += 50 {
		mustWrite(t, s, offset, strings.Repeat("x", 49)+"\n")
		if behind := int64(offset+50) - s.stored; behind > config.MaxBehind {
			t.Fatalf("%d bytes are to be read again: want at most %d", behind, config.MaxBehind)
		}
	}
}

func TestLostBytes(t *testing.T) {
	t.Parallel()
	store := memory.New()
	s := newStream(t, store, quietConfig())
	warned := warnings(s)
	mustWrite(t, s, 0, "loss=1\nloss=")
	mustWrite(t, s, 100, "2\nloss=3\n")
	mustFinish(t, s)
	wantWarning(t, *warned, "88 bytes")
	if diff := cmp.Diff([]string{"1", "3"}, values(stored(t, store))); diff != "" {
		t.Errorf("a line whose middle is lost has no metric: -want, +got:\n%s", diff)
	}
}

func TestRewrittenFile(t *testing.T) {
	t.Parallel()
	store := memory.New()
	s := newStream(t, store, quietConfig())
	mustWrite(t, s, 0, "loss=1\nloss=2\n")
	s.tick()
	mustWrite(t, s, 0, "loss=3\n")
	mustFinish(t, s)
	if diff := cmp.Diff([]string{"3"}, values(stored(t, store))); diff != "" {
		t.Errorf("a file that is written anew has its new content: -want, +got:\n%s", diff)
	}
}

func TestDiscard(t *testing.T) {
	t.Parallel()
	store := memory.New()
	s := newStream(t, store, quietConfig())
	mustWrite(t, s, 0, "loss=1\n")
	s.tick()
	mustWrite(t, s, 7, "loss=2\nlo")
	if err := s.Discard(t.Context()); err != nil {
		t.Fatal(err)
	}
	if offset, err := s.Offset(t.Context()); offset != 0 || err != nil {
		t.Errorf("Offset after Discard: %d, %v; want 0", offset, err)
	}
	mustWrite(t, s, 0, "loss=3\n")
	mustFinish(t, s)
	if diff := cmp.Diff([]string{"3"}, values(stored(t, store))); diff != "" {
		t.Errorf("a run that begins again is reported once: -want, +got:\n%s", diff)
	}
}

// flaky is a store that fails to append while broken is set.
type flaky struct {
	observation.Store
	broken *atomic.Bool
}

func (f flaky) Append(ctx context.Context, t observation.Trial, b observation.Batch) error {
	if f.broken.Load() {
		return observation.ErrFull
	}
	return f.Store.Append(ctx, t, b)
}

// warnings are what a stream warns of from now on.
func warnings(s *Stream) *[]string {
	told := &[]string{}
	s.warn = func(message string) { *told = append(*told, message) }
	return told
}

// wantWarning wants users to have been told once, and of what.
func wantWarning(t *testing.T, told []string, of string) {
	t.Helper()
	if len(told) != 1 || !strings.Contains(told[0], of) {
		t.Errorf("the warnings are %q, want one of %q", told, of)
	}
}

// TestStoreFails checks that a store without space costs neither the process
// its memory nor the trial its summary, and that Finish waits for no miracle.
func TestStoreFails(t *testing.T) {
	t.Parallel()
	store := flaky{memory.New(), new(atomic.Bool)}
	store.broken.Store(true)
	s := newStream(t, store, quietConfig())
	warned := warnings(s)
	offset := 0
	for i := range 1000 {
		line := fmt.Sprintf("loss=%d\n", (i+500)%1000)
		mustWrite(t, s, offset, line)
		offset += len(line)
		if len(s.waiting) > s.config.MaxWaiting {
			t.Fatalf("%d points wait: want at most %d", len(s.waiting), s.config.MaxWaiting)
		}
	}
	if err := s.Finish(t.Context()); !errors.Is(err, observation.ErrFull) {
		t.Fatalf("Finish: got %v, want ErrFull", err)
	}
	wantWarning(t, *warned, "the store is unavailable, and more than 100 data points are waiting")
	store.broken.Store(false)
	mustFinish(t, s)
	want := map[string]observation.Summary{"loss": {Min: "0", Max: "999", Latest: "499"}}
	if diff := cmp.Diff(want, observation.Summarize(stored(t, store))); diff != "" {
		t.Errorf("summary: -want, +got:\n%s", diff)
	}
}

// TestEndless checks the bounds on a program that prints metrics without end,
// and that its summary is exact nevertheless, over a restart too.
func TestEndless(t *testing.T) {
	t.Parallel()
	store, config := memory.New(), quietConfig()
	s := newStream(t, store, config)
	warned := warnings(s)
	offset := 0
	for i := range 50_000 {
		if i == 30_000 {
			mustFinish(t, s)
			wantWarning(t, *warned, "more than 1000 data points")
			s = newStream(t, store, config)
		}
		line := fmt.Sprintf("loss=%d\n", (i*7919+12345)%50_000)
		mustWrite(t, s, offset, line)
		offset += len(line)
	}
	mustFinish(t, s)
	points := stored(t, store)
	if limit := config.MaxPoints + config.MaxWaiting; len(points) > limit {
		t.Errorf("%d points stored: want at most %d", len(points), limit)
	}
	want := map[string]observation.Summary{"loss": {Min: "0", Max: "49999", Latest: fmt.Sprint((49_999*7919 + 12345) % 50_000)}}
	if diff := cmp.Diff(want, observation.Summarize(points)); diff != "" {
		t.Errorf("summary: -want, +got:\n%s", diff)
	}
}

func TestLongLine(t *testing.T) {
	t.Parallel()
	store := memory.New()
	s := newStream(t, store, DefaultConfig())
	offset := 0
	write := func(p string) {
		mustWrite(t, s, offset, p)
		offset += len(p)
	}
	write("loss=1 ")
	for range 10 << 10 {
		write(strings.Repeat("x", 1<<10))
	}
	if held := cap(s.units.(*lines).partial); held > 2<<20 {
		t.Errorf("a line of 10 MiB holds %d bytes", held)
	}
	write(" loss=2\nloss=3\n")
	mustFinish(t, s)
	if diff := cmp.Diff([]string{"1", "3"}, values(stored(t, store))); diff != "" {
		t.Errorf("metrics of the begin of a long line count: -want, +got:\n%s", diff)
	}
}

// BenchmarkWrite measures how fast output is read: with a metric in each line
// and with none.
func BenchmarkWrite(b *testing.B) {
	for name, line := range map[string]string{
		"metrics": "epoch 12 loss=0.123456 accuracy=0.98\n",
		"chatter": "2024-01-02 03:04:05 INFO  starting worker 12 of 48 on node a-b-c\n",
	} {
		b.Run(name, func(b *testing.B) {
			chunk := []byte(strings.Repeat(line, 32<<10/len(line)))
			s := newStream(b, memory.New(), DefaultConfig())
			b.SetBytes(int64(len(chunk)))
			for offset := int64(0); b.Loop(); offset += int64(len(chunk)) {
				if err := s.Write(b.Context(), offset, chunk, now()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
