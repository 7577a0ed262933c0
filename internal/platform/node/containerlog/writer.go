// SPDX-License-Identifier: Apache-2.0

package containerlog

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

const (
	// Keep is how many of a log's newest bytes are retained: 50 MiB, five
	// times what a kubelet keeps in one file, and small enough that a thousand
	// runaway programs fit on a disk.
	Keep = 50 << 20

	// retainStep is the least progress for which a hole is punched, so that a
	// steady writer does not cost one system call for each block.
	retainStep = 1 << 20

	// blockSize divides the offsets of holes: file systems free whole blocks.
	blockSize = 4096

	// markResolution is the distance in time below which two marks become one.
	markResolution = time.Millisecond
)

// ErrRetention says that this system cannot free the front of a file: the log
// grows without bound. On Linux it depends on the file system.
var ErrRetention = errors.New("this system does not support punching holes in files")

// Writer is the node's side of one log. It is for one goroutine at a time.
type Writer struct {
	log   *os.File
	index index
	last  record
	count int
}

// Create opens the log at path for appending, or makes it (mode 0600) with its
// directories. An existing log is continued, with its start and its times. A
// new one has its first block: on a full disk Create fails, before a program
// starts whose output would be lost.
func Create(path string) (*Writer, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("cannot create directory of log %s: %w", path, err)
	}
	log, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open log: %w", err)
	}
	f, err := os.OpenFile(indexPath(path), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		log.Close()
		return nil, fmt.Errorf("cannot open index of log: %w", err)
	}
	w := &Writer{log: log, index: index{f}}
	if !w.index.valid() {
		err = w.index.reset()
	}
	if size, _ := w.Size(); err == nil && size == 0 {
		err = reserve(log, blockSize)
	}
	if err != nil {
		w.Close()
		return nil, fmt.Errorf("cannot begin log %s: %w", path, err)
	}
	w.count = w.index.count()
	w.last, _ = w.index.at(w.count - 1)
	return w, nil
}

// File is the log opened for reading and appending; the Writer owns it. A container gets it as its
// standard output and error.
func (w *Writer) File() *os.File { return w.log }

// Size is the offset behind the last byte.
func (w *Writer) Size() (int64, error) {
	st, err := w.log.Stat()
	if err != nil {
		return 0, fmt.Errorf("cannot read size of log: %w", err)
	}
	return st.Size(), nil
}

// Start is the offset of the first byte that is kept.
func (w *Writer) Start() int64 { return w.index.start() }

// Mark records that all bytes before end had arrived at time at. An end that is
// already marked does nothing. An end before the last one means that the
// program truncated its own output (as `> /dev/stdout` does): the log starts
// over at offset 0. Times never decrease: if the clock is set back, the time
// stands still.
func (w *Writer) Mark(end int64, at time.Time) error {
	if end < w.last.end {
		if err := w.index.reset(); err != nil {
			return fmt.Errorf("cannot reset index of log: %w", err)
		}
		w.last, w.count = record{}, 0
	}
	if end == w.last.end {
		return nil
	}
	next := record{end: end, time: max(at.UnixNano(), w.last.time)}
	i := w.count
	if w.count > 0 && next.time-w.last.time < int64(markResolution) {
		next.time, i = w.last.time, w.count-1
	}
	if err := w.index.put(i, next); err != nil {
		return fmt.Errorf("cannot mark time in log: %w", err)
	}
	w.last, w.count = next, i+1
	return nil
}

// Retain frees bytes at the front of the log, such that at least the newest
// keep bytes of the first consumed ones stay; consumed is how far every
// observer has read. The log then starts at the beginning of a line, when
// one begins within 64 KiB. It does nothing until a MiB can be freed.
func (w *Writer) Retain(consumed, keep int64) error {
	old, limit := w.index.start(), consumed-keep
	if limit-old < retainStep {
		return nil
	}
	start := w.lineBefore(limit)
	if start <= old {
		return nil
	}
	if err := w.index.setStart(start); err != nil {
		return fmt.Errorf("cannot move start of log: %w", err)
	}
	if hole := start - start%blockSize; hole > 0 {
		if err := punch(w.log, hole); err != nil {
			w.index.setStart(old)
			return fmt.Errorf("cannot free the front of log %s: %w", w.log.Name(), err)
		}
	}
	return nil
}

// lineBefore returns the last beginning of a line in the 64 KiB before limit, or limit.
func (w *Writer) lineBefore(limit int64) int64 {
	buf := make([]byte, min(64<<10, limit))
	n, err := w.log.ReadAt(buf, limit-int64(len(buf)))
	if err != nil || n < len(buf) {
		return limit
	}
	if i := bytes.LastIndexByte(buf, '\n'); i >= 0 {
		return limit - int64(len(buf)) + int64(i) + 1
	}
	return limit
}

// Close closes the files and keeps them on disk.
func (w *Writer) Close() error {
	w.index.close()
	return w.log.Close()
}

// Remove deletes a log and its index. A log that is not there is no error.
func Remove(path string) error {
	for _, p := range []string{path, indexPath(path)} {
		if err := os.Remove(p); err != nil && !os.IsNotExist(err) {
			return fmt.Errorf("cannot remove log: %w", err)
		}
	}
	return nil
}
