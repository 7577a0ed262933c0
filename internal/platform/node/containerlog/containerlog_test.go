// SPDX-License-Identifier: Apache-2.0

package containerlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func show(t *testing.T, path string, o Options) string {
	t.Helper()
	var out bytes.Buffer
	if err := Copy(t.Context(), &out, path, o, nil); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func create(t *testing.T) (*Writer, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ns", "pod", "main", "0.log")
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w, path
}

func mark(t *testing.T, w *Writer, at time.Time) {
	t.Helper()
	size, err := w.Size()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Mark(size, at); err != nil {
		t.Fatal(err)
	}
}

func TestFollowEndsWithTheContainer(t *testing.T) {
	t.Parallel()
	w, path := create(t)
	program := exec.Command("sh", "-c", "for i in 1 2 3; do echo line $i; read x; done; printf last")
	program.Stdout = w.File()
	steps, err := program.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	ended, done := make(chan struct{}), make(chan error)
	pr, pw := io.Pipe()
	go func() {
		err := Copy(t.Context(), pw, path, Options{Tail: All, Follow: true}, ended)
		pw.Close()
		done <- err
	}()
	seen := ""
	buf := make([]byte, 100)
	for i := 1; i <= 3; i++ {
		for want := fmt.Sprintf("line %d\n", i); !strings.HasSuffix(seen, want); {
			n, err := pr.Read(buf)
			if seen += string(buf[:n]); err != nil {
				t.Fatalf("after %q: %v", seen, err)
			}
		}
		fmt.Fprintln(steps)
	}
	if err := program.Wait(); err != nil {
		t.Fatal(err)
	}
	close(ended)
	rest, err := io.ReadAll(pr)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := seen+string(rest), "line 1\nline 2\nline 3\nlast"; got != want {
		t.Errorf("follow gave %q, want %q", got, want)
	}
	if err := <-done; err != nil {
		t.Errorf("follow ended with %v", err)
	}
}

func TestFollowEndsWithItsContext(t *testing.T) {
	t.Parallel()
	_, path := create(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- Copy(ctx, io.Discard, path, Options{Tail: All, Follow: true}, nil) }()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
}

func TestLongLine(t *testing.T) {
	t.Parallel()
	w, path := create(t)
	long := strings.Repeat("0123456789", 1<<20)
	fmt.Fprintf(w.File(), "a\n%s\nb\n", long)
	mark(t, w, epoch)
	stamp := epoch.Format(stampFormat) + " "
	want := stamp + long + "\n" + stamp + "b\n"
	if got := show(t, path, Options{Tail: 2, Timestamps: true}); got != want {
		t.Errorf("got %d bytes, want %d", len(got), len(want))
	}
}

func TestTimesOfBytesWithoutRecords(t *testing.T) {
	t.Parallel()
	w, path := create(t)
	fmt.Fprintln(w.File(), "marked")
	mark(t, w, epoch)
	fmt.Fprintln(w.File(), "not yet")
	if err := os.Chtimes(path, time.Time{}, epoch.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		reason string
		opts   Options
		want   string
	}{
		{"the file's last change stands in for the record", Options{Tail: All, Timestamps: true},
			"2026-01-02T03:04:05.000000000Z marked\n2026-01-02T04:04:05.000000000Z not yet\n"},
		{"since finds what has no record", Options{Tail: All, Since: epoch.Add(time.Minute)}, "not yet\n"},
		{"nothing is that new", Options{Tail: All, Since: epoch.Add(2 * time.Hour)}, ""},
	}
	for _, tt := range tests {
		if got := show(t, path, tt.opts); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.reason, got, tt.want)
		}
	}
}

func TestIndexMissingOrTorn(t *testing.T) {
	t.Parallel()
	w, path := create(t)
	fmt.Fprintln(w.File(), "one")
	mark(t, w, epoch)
	fmt.Fprintln(w.File(), "two")
	mark(t, w, epoch.Add(time.Second))
	full, err := os.ReadFile(indexPath(path))
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(full) {
		if err := os.WriteFile(indexPath(path), full[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		if got := show(t, path, Options{Tail: All}); got != "one\ntwo\n" {
			t.Errorf("index cut at %d: got %q", cut, got)
		}
	}
	if err := os.Remove(indexPath(path)); err != nil {
		t.Fatal(err)
	}
	if got := show(t, path, Options{Tail: 1}); got != "two\n" {
		t.Errorf("without an index: got %q", got)
	}
}

func TestProgramTruncatesItsOutput(t *testing.T) {
	t.Parallel()
	w, path := create(t)
	fmt.Fprintln(w.File(), "a long line before")
	mark(t, w, epoch)
	program := exec.Command("sh", "-c", "echo new > /dev/stdout")
	program.Stdout = w.File()
	if err := program.Run(); err != nil {
		t.Skipf("this shell cannot open /dev/stdout: %v", err)
	}
	mark(t, w, epoch.Add(time.Second))
	if got, want := show(t, path, Options{Tail: All, Timestamps: true}), "2026-01-02T03:04:06.000000000Z new\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRetainBoundsTheDisk(t *testing.T) {
	t.Parallel()
	w, path := create(t)
	row := strings.Repeat("r", 999) + "\n"
	for i := range 64 {
		if _, err := w.File().WriteString(strings.Repeat(row, 1000)); err != nil {
			t.Fatal(err)
		}
		mark(t, w, epoch.Add(time.Duration(i)*time.Second))
		size, err := w.Size()
		if err != nil {
			t.Fatal(err)
		}
		err = w.Retain(size, 4<<20)
		if errors.Is(err, ErrRetention) {
			t.Skipf("on %s: %v", runtime.GOOS, err)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil {
		t.Fatal(err)
	}
	if used := st.Blocks * 512; used > 8<<20 {
		t.Errorf("the log holds %d bytes of disk, want at most 8 MiB", used)
	}
	got := show(t, path, Options{Tail: All})
	if len(got)%len(row) != 0 || strings.Count(got, row) != len(got)/len(row) {
		t.Errorf("the log of %d bytes does not begin at a line", len(got))
	}
	if len(got) < 4<<20 || len(got) > 6<<20 {
		t.Errorf("the log shows %d bytes, want 4 to 6 MiB", len(got))
	}
	if got := show(t, path, Options{Tail: 100000, Since: epoch}); len(got) > 6<<20 {
		t.Errorf("tail reached into the hole: %d bytes", len(got))
	}
	again, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if again.Start() != w.Start() || again.Start() == 0 {
		t.Errorf("start is %d after opening again, want %d", again.Start(), w.Start())
	}
}

func TestRetainWaitsForTheSlowestObserver(t *testing.T) {
	t.Parallel()
	w, _ := create(t)
	if _, err := w.File().Write(make([]byte, 8<<20)); err != nil {
		t.Fatal(err)
	}
	if err := w.Retain(1<<20, 1<<20); err != nil {
		t.Fatal(err)
	}
	if w.Start() != 0 {
		t.Errorf("start moved to %d although an observer has read only 1 MiB", w.Start())
	}
}

func TestCopyOfUnknownLog(t *testing.T) {
	t.Parallel()
	err := Copy(t.Context(), io.Discard, filepath.Join(t.TempDir(), "none.log"), Options{Tail: All}, nil)
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want os.ErrNotExist", err)
	}
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte("diwanlog\x00\x00\x00\x00\x00\x00\x00\x00"), int64(0))
	f.Add([]byte("diwanlog\x02\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x80"), int64(5))
	f.Fuzz(func(t *testing.T, bytes []byte, since int64) {
		path := filepath.Join(t.TempDir(), "f.log")
		if err := os.WriteFile(path, []byte("one\ntwo\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(indexPath(path), bytes, 0o600); err != nil {
			t.Fatal(err)
		}
		err := Copy(t.Context(), io.Discard, path, Options{Tail: All, Timestamps: true, Since: time.Unix(0, since)}, nil)
		if err != nil {
			t.Fatalf("a foreign index must not hide the log: %v", err)
		}
	})
}

// TestFullDisk creates a log where there is no space for what a program would
// print, though there is for the log's index.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		t.Skip("a small file system can be mounted by root alone, on Linux")
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=8k", "none", dir).CombinedOutput(); err != nil {
		t.Skipf("no small file system can be mounted here: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	ballast, path := filepath.Join(dir, "ballast"), filepath.Join(dir, "0.log")
	if err := os.WriteFile(ballast, make([]byte, 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the first leaves the index behind
		if _, err := Create(path); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("without space for its first block, Create gives %v, want ENOSPC", err)
		}
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := os.WriteFile(ballast, make([]byte, 4096), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the ballast is written again: %v, want ENOSPC", err)
	}
	if _, err := w.File().WriteString("the last words\n"); err != nil {
		t.Errorf("a program cannot write to its log: %v", err)
	}
}
