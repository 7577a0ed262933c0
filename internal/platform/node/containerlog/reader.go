// SPDX-License-Identifier: Apache-2.0

package containerlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// All is the Tail of a reader that wants every line.
const All = -1

// stampFormat is RFC 3339 with nine digits, as kubectl logs --timestamps shows it.
const stampFormat = "2006-01-02T15:04:05.000000000Z07:00"

// Options choose what Copy shows. The zero value shows nothing, for Tail is 0:
// use All for every line.
type Options struct {
	// Since leaves out lines that began before it; the zero time leaves out none.
	Since time.Time
	// Tail is the number of last lines to begin with (a last line without a
	// newline counts), or All. Since and Tail both hold.
	Tail int64
	// Timestamps puts the time at which a line began to arrive and a blank before it.
	Timestamps bool
	// Limit is the most bytes that are written, timestamps included; 0 is no limit.
	Limit int64
	// Follow also reads what is appended until ended is closed.
	Follow bool
	// Begun, if set, is called once the start position is fixed: everything
	// appended from then on is shown.
	Begun func()
}

// Copy writes the log at path to w as opts say. With Follow it returns nil
// once ended is closed and all is written; a nil ended means that only ctx ends it. It
// holds one buffer of 64 KiB, whatever the lengths of the log and of its lines.
func Copy(ctx context.Context, w io.Writer, path string, opts Options, ended <-chan struct{}) error {
	r, err := open(path)
	if err != nil {
		return err
	}
	defer r.close()
	offset, err := r.first(opts)
	if err != nil {
		return err
	}
	if opts.Begun != nil {
		opts.Begun()
	}
	out := &printer{w: w, left: opts.Limit, limited: opts.Limit > 0, stamps: opts.Timestamps, reader: r, fresh: true}
	if !opts.Follow {
		closed := make(chan struct{})
		close(closed)
		ended = closed
	}
	err = r.copy(ctx, out, offset, opts, ended)
	if errors.Is(err, errLimit) {
		return nil
	}
	return err
}

type reader struct {
	log   *os.File
	index index
	clock clock
}

func open(path string) (*reader, error) {
	log, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot open log: %w", err)
	}
	x, err := openIndex(path)
	if err != nil {
		log.Close()
		return nil, err
	}
	return &reader{log: log, index: x, clock: clock{index: x}}, nil
}

func (r *reader) close() {
	r.log.Close()
	r.index.close()
}

// start is the offset of the first byte that is kept. A start behind the end
// is from before the program truncated the log.
func (r *reader) start() int64 {
	start := r.index.start()
	if st, err := r.log.Stat(); err != nil || start > st.Size() {
		return 0
	}
	return start
}

// copy prints from offset on until ended is closed and all is printed.
func (r *reader) copy(ctx context.Context, out *printer, offset int64, opts Options, ended <-chan struct{}) error {
	var changes *changes
	if opts.Follow {
		changes = watch(r.log.Name())
		defer changes.close()
	}
	buf := make([]byte, 64<<10)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		last := isClosed(ended)
		n, err := r.log.ReadAt(buf, offset)
		if err != nil && err != io.EOF {
			return fmt.Errorf("cannot read log: %w", err)
		}
		if start := r.start(); start > offset {
			// Retention overtook this reader: what was read may be a hole.
			offset, out.fresh = start, true
			continue
		}
		if err := out.print(buf[:n], offset); err != nil {
			return err
		}
		offset += int64(n)
		if n > 0 {
			continue
		}
		if st, err := r.log.Stat(); err == nil && st.Size() < offset {
			// The program truncated its own output: it starts over.
			offset, out.fresh, r.clock.begun = 0, true, false
			continue
		}
		if last {
			return nil
		}
		changes.wait(ctx, ended)
	}
}

// first is the offset at which output begins.
func (r *reader) first(opts Options) (int64, error) {
	st, err := r.log.Stat()
	if err != nil {
		return 0, fmt.Errorf("cannot read size of log: %w", err)
	}
	start, size := r.start(), st.Size()
	if opts.Tail >= 0 {
		if start, err = r.tail(start, size, opts.Tail); err != nil {
			return 0, err
		}
	}
	if opts.Since.IsZero() {
		return start, nil
	}
	offset, found := r.index.since(opts.Since, st.ModTime())
	if !found {
		return size, nil
	}
	if offset <= start {
		return start, nil
	}
	return r.nextLine(offset, size)
}

// tail returns the beginning of the last n lines in [start, size).
func (r *reader) tail(start, size, n int64) (int64, error) {
	if n == 0 {
		return size, nil
	}
	buf := make([]byte, 64<<10)
	for end := size; end > start; {
		from := max(start, end-int64(len(buf)))
		block := buf[:end-from]
		if _, err := r.log.ReadAt(block, from); err != nil && err != io.EOF {
			return 0, fmt.Errorf("cannot read log: %w", err)
		}
		for i := bytes.LastIndexByte(block, '\n'); i >= 0; i = bytes.LastIndexByte(block[:i], '\n') {
			at := from + int64(i) + 1
			if at == size { // the newline that ends the last line
				continue
			}
			if n--; n == 0 {
				return at, nil
			}
		}
		end = from
	}
	return start, nil
}

// nextLine returns the first beginning of a line at offset or behind it.
func (r *reader) nextLine(offset, size int64) (int64, error) {
	buf := make([]byte, 64<<10)
	for at := offset - 1; at < size; {
		n, err := r.log.ReadAt(buf, at)
		if i := bytes.IndexByte(buf[:n], '\n'); i >= 0 {
			return at + int64(i) + 1, nil
		}
		if err != nil && err != io.EOF {
			return 0, fmt.Errorf("cannot read log: %w", err)
		}
		if n == 0 {
			break
		}
		at += int64(n)
	}
	return size, nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
