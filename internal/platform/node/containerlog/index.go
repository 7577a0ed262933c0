// SPDX-License-Identifier: Apache-2.0

package containerlog

import (
	"encoding/binary"
	"fmt"
	"os"
	"sort"
	"time"
)

// The index file: a header of magic and start, then records of end and time,
// all little endian. Each number is written with one pwrite of 8 or 16 bytes at a multiple of
// 8, so a reader in another process sees integers.
const (
	magic       = "diwanlog"
	recordBytes = 16
)

// record says that all bytes before end had arrived at time (Unix nanoseconds).
type record struct{ end, time int64 }

// index reads and writes an index file. A nil file is an empty index.
type index struct{ f *os.File }

func indexPath(path string) string { return path + ".idx" }

// openIndex opens an index for reading; one that is missing or foreign is empty.
func openIndex(path string) (index, error) {
	f, err := os.Open(indexPath(path))
	if os.IsNotExist(err) {
		return index{}, nil
	}
	if err != nil {
		return index{}, fmt.Errorf("cannot open index of log %s: %w", path, err)
	}
	if !(index{f}).valid() {
		f.Close()
		return index{}, nil
	}
	return index{f}, nil
}

func (x index) valid() bool {
	var head [recordBytes]byte
	_, err := x.f.ReadAt(head[:], 0)
	return err == nil && string(head[:len(magic)]) == magic && int64(binary.LittleEndian.Uint64(head[len(magic):])) >= 0
}

func (x index) close() {
	if x.f != nil {
		x.f.Close()
	}
}

// start is the offset of the first byte that is kept.
func (x index) start() int64 {
	var b [8]byte
	if x.f == nil {
		return 0
	}
	if _, err := x.f.ReadAt(b[:], int64(len(magic))); err != nil {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(b[:]))
}

func (x index) setStart(start int64) error {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(start))
	_, err := x.f.WriteAt(b[:], int64(len(magic)))
	return err
}

// reset makes the index empty, with start 0.
func (x index) reset() error {
	var head [recordBytes]byte
	copy(head[:], magic)
	if err := x.f.Truncate(0); err != nil {
		return err
	}
	_, err := x.f.WriteAt(head[:], 0)
	return err
}

// count is the number of whole records.
func (x index) count() int {
	if x.f == nil {
		return 0
	}
	st, err := x.f.Stat()
	if err != nil {
		return 0
	}
	return max(0, int(st.Size()/recordBytes)-1)
}

// at returns record i; false when there is none yet.
func (x index) at(i int) (record, bool) {
	var b [recordBytes]byte
	if x.f == nil || i < 0 {
		return record{}, false
	}
	if _, err := x.f.ReadAt(b[:], int64(i+1)*recordBytes); err != nil {
		return record{}, false
	}
	return record{
		end:  int64(binary.LittleEndian.Uint64(b[:8])),
		time: int64(binary.LittleEndian.Uint64(b[8:])),
	}, true
}

func (x index) put(i int, r record) error {
	var b [recordBytes]byte
	binary.LittleEndian.PutUint64(b[:8], uint64(r.end))
	binary.LittleEndian.PutUint64(b[8:], uint64(r.time))
	_, err := x.f.WriteAt(b[:], int64(i+1)*recordBytes)
	return err
}

// since returns the first offset whose byte arrived at t or later, among the
// bytes that have records; bytes behind the last record arrived at tail.
func (x index) since(t, tail time.Time) (offset int64, found bool) {
	n := x.count()
	i := sort.Search(n, func(i int) bool {
		r, ok := x.at(i)
		return !ok || r.time >= t.UnixNano()
	})
	if prev, ok := x.at(i - 1); ok {
		offset = prev.end
	}
	return offset, i < n || !tail.Before(t)
}

// clock returns the arrival time of bytes, by ascending offset.
type clock struct {
	index index
	next  int // first record that may lie behind the byte asked for
	begun bool
}

// timeOf returns when the byte at offset arrived: by its record, else by the
// file's last change.
func (c *clock) timeOf(offset int64, log *os.File) time.Time {
	if !c.begun {
		c.begun = true
		c.next = sort.Search(c.index.count(), func(i int) bool {
			r, ok := c.index.at(i)
			return !ok || r.end > offset
		})
	}
	last := int64(0)
	for {
		r, ok := c.index.at(c.next)
		if !ok {
			return latest(log, last)
		}
		if r.end > offset {
			return time.Unix(0, r.time)
		}
		last = r.time
		c.next++
	}
}

// latest is the log's last change, but not before the time of the last record.
func latest(log *os.File, last int64) time.Time {
	t := time.Unix(0, last)
	if st, err := log.Stat(); err == nil && st.ModTime().After(t) {
		return st.ModTime()
	}
	return t
}
