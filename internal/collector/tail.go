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
	"syscall"
	"time"
)

// tail reads a file that grows into a stream.
type tail struct {
	stream *Stream
	path   string       // on this machine
	own    bool         // the file may be removed
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
		if err := os.Remove(t.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
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

// read gives the stream what the file has behind its offset. A file that has
// become shorter was written anew, and is read from its start.
func (t *tail) read(ctx context.Context, now time.Time) error {
	if !t.begun {
		offset, err := t.stream.Offset(ctx)
		if err != nil {
			return err
		}
		t.offset, t.begun = offset, true
	}
	info, err := os.Stat(t.path)
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

func (t *tail) copy(ctx context.Context, now time.Time) error {
	file, err := os.OpenFile(t.path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
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
