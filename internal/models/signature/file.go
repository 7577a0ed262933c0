// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// windowSize is how much of a file is read at a time. Weights between what matters
// are skipped, so a large one would read much that is not needed.
const windowSize = 16 << 10

// file is a file of the model or a member of an archive, read at random.
type file struct {
	r            *reading
	name, member string
	at           io.ReaderAt
	size         int64
	closer       io.Closer

	window []byte
	start  int64
	buffer []byte
}

// fail wraps an error with the place in this file, unless it is one with a place.
func (f *file) fail(offset int64, err error) error {
	if err == nil {
		return nil
	}
	if _, placed := err.(*Error); placed || f.r.ctx.Err() != nil && errors.Is(err, f.r.ctx.Err()) {
		return err
	}
	return &Error{File: f.name, Member: f.member, Offset: offset, Err: err}
}

func (f *file) errorf(offset int64, format string, args ...any) error {
	return f.fail(offset, fmt.Errorf(format, args...))
}

// peek returns up to n bytes at an offset, fewer only at the end of the file. They are
// valid until the next peek. n is at most windowSize.
func (f *file) peek(offset int64, n int) ([]byte, error) {
	if offset < 0 || offset > f.size {
		return nil, f.errorf(-1, "offset %d is outside of the %d bytes", offset, f.size)
	}
	n = int(min(int64(n), f.size-offset))
	if offset < f.start || offset+int64(n) > f.start+int64(len(f.window)) {
		if err := f.r.ctx.Err(); err != nil {
			return nil, err
		}
		if f.buffer == nil {
			f.buffer = make([]byte, min(windowSize, f.size))
		}
		want := int(min(int64(len(f.buffer)), f.size-offset))
		f.start, f.window = offset, nil
		if err := f.readAt(f.buffer[:want], offset); err != nil {
			return nil, err
		}
		f.window = f.buffer[:want]
	}
	at := int(offset - f.start)
	return f.window[at : at+n], nil
}

func (f *file) readAt(p []byte, offset int64) error {
	n, err := f.at.ReadAt(p, offset)
	if n == len(p) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("it became shorter while it was read")
	}
	return f.fail(offset+int64(n), err)
}

// need is peek for exactly n bytes.
func (f *file) need(offset int64, n int) ([]byte, error) {
	data, err := f.peek(offset, n)
	if err == nil && len(data) < n {
		err = f.errorf(offset, "it ends in the middle of a value: %d of %d bytes are there", len(data), n)
	}
	return data, err
}

// span checks that n bytes at offset are within the file.
func (f *file) span(offset, n int64, what string) error {
	if offset < 0 || n < 0 || offset > f.size || n > f.size-offset {
		return f.errorf(offset, "%s has %d bytes, more than the file, which ends at %d", what, n, f.size)
	}
	return nil
}

// bytes returns a copy of n bytes at an offset.
func (f *file) bytes(offset, n int64, what string) ([]byte, error) {
	if err := f.span(offset, n, what); err != nil {
		return nil, err
	}
	if err := f.r.hold(n + 16); err != nil {
		return nil, f.fail(offset, fmt.Errorf("%s: %w", what, err))
	}
	data := make([]byte, n)
	if n <= windowSize {
		view, err := f.need(offset, int(n))
		if err != nil {
			return nil, err
		}
		copy(data, view)
		return data, nil
	}
	return data, f.readAt(data, offset)
}

// text is bytes as a string.
func (f *file) text(offset, n int64, what string) (string, error) {
	data, err := f.bytes(offset, n, what)
	return string(data), err
}

// all returns the whole file.
func (f *file) all() ([]byte, error) { return f.bytes(0, f.size, "the file") }

func (f *file) u32(offset int64, order binary.ByteOrder) (uint32, error) {
	data, err := f.need(offset, 4)
	if err != nil {
		return 0, err
	}
	return order.Uint32(data), nil
}

func (f *file) u64(offset int64, order binary.ByteOrder) (uint64, error) {
	data, err := f.need(offset, 8)
	if err != nil {
		return 0, err
	}
	return order.Uint64(data), nil
}

// stream reads from an offset to the end in sequence; what it reads counts as scanned.
func (f *file) stream(offset, n int64) *bufio.Reader {
	return bufio.NewReaderSize(&scanned{f.r, io.NewSectionReader(f.at, offset, n)}, 64<<10)
}

// scanned charges what is read to the limit Scanned.
type scanned struct {
	r  *reading
	in io.Reader
}

func (s *scanned) Read(p []byte) (int, error) {
	n, err := s.in.Read(p)
	if spent := s.r.scan(int64(n)); spent != nil {
		return 0, spent
	}
	return n, err
}
