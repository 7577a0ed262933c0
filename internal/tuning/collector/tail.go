// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// tail reads a file that grows into a stream.
type tail struct {
	stream *Stream
	path   string       // on this machine
	own    bool         // the file may be removed
	within string       // Subject.Within
	kept   func() int64 // of the run's output, the offset of the first byte that is still there

	begun  bool  // offset is the stream's
	offset int64 // what the stream has
}

// Look implements Observer.
func (t *tail) Look(ctx context.Context, now time.Time) error {
	err := t.read(ctx, now)
	if err != nil {
		t.begun = false
	}
	return err
}

// Finish implements Observer.
func (t *tail) Finish(ctx context.Context, now time.Time) error {
	err := t.read(ctx, now)
	if err == nil {
		err = t.stream.Finish(ctx)
	}
	if err != nil {
		t.begun = false
	}
	return err
}

// Discard implements Observer. The file goes too, so that the next run begins
// with nothing.
func (t *tail) Discard(ctx context.Context) error {
	if t.own {
		if err := t.remove(); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	t.begun = false
	return t.stream.Discard(ctx)
}

// Needs implements Observer.
func (t *tail) Needs() int64 {
	if t.kept != nil {
		return t.offset
	}
	return math.MaxInt64
}

// Close implements Observer.
func (t *tail) Close() {}

// read passes what the file has after its offset to the stream. A file that
// has become shorter was rewritten, and is read from the start.
func (t *tail) read(ctx context.Context, now time.Time) error {
	if !t.begun {
		offset, err := t.stream.Offset(ctx)
		if err != nil {
			return err
		}
		t.offset, t.begun = offset, true
	}
	info, err := t.stat()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // not written yet
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("cannot read metrics from %s: want a file", t.path)
	}
	if t.kept != nil {
		t.offset = max(t.offset, t.kept())
	} else if info.Size() < t.offset {
		t.offset = 0
	}
	if info.Size() == t.offset {
		return nil
	}
	return t.copy(ctx, now)
}

// The file itself: where links must not leave a directory, by way of that directory.

func (t *tail) stat() (info fs.FileInfo, err error) {
	if t.within == "" {
		return os.Stat(t.path)
	}
	err = t.inside(func(root *os.Root, name string) error {
		info, err = root.Stat(name)
		return err
	})
	return info, err
}

func (t *tail) open() (file *os.File, err error) {
	const flags = os.O_RDONLY | syscall.O_NONBLOCK // a pipe does not block
	if t.within == "" {
		return os.OpenFile(t.path, flags, 0)
	}
	err = t.inside(func(root *os.Root, name string) error {
		file, err = root.OpenFile(name, flags, 0)
		return err
	})
	return file, err
}

func (t *tail) remove() error {
	if t.within == "" {
		return os.Remove(t.path)
	}
	return t.inside((*os.Root).Remove)
}

// inside does something to the file in the directory that it must not leave.
func (t *tail) inside(do func(root *os.Root, name string) error) error {
	name, err := filepath.Rel(t.within, t.path)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(t.within)
	if err != nil {
		return err
	}
	defer root.Close()
	return do(root, name)
}

func (t *tail) copy(ctx context.Context, now time.Time) error {
	file, err := t.open()
	if err != nil {
		return err
	}
	defer file.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := file.ReadAt(buffer, t.offset)
		if n > 0 {
			if err := t.stream.Write(ctx, t.offset, buffer[:n], now); err != nil {
				return err
			}
			t.offset += int64(n)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}
