// SPDX-License-Identifier: Apache-2.0

package collector

import "bytes"

// framer cuts a sequence of bytes, which come in pieces, into units: lines of
// text or records.
type framer interface {
	// add takes the next bytes and calls each with every unit that they
	// complete. The unit is good only during the call, in which start is already
	// the offset after it.
	add(p []byte, each func(unit []byte))
	// finish says that no more bytes come: each is called with a last unit
	// without an end, where there is one.
	finish(each func(unit []byte))
	// begin forgets what was added, and goes on at the offset of a unit.
	begin(offset int64)
	// start is the offset of the first byte of the unit that is not complete,
	// next that of the first byte that has not come.
	start() int64
	next() int64
}

// lines cuts a sequence of bytes, which come in pieces, into lines.
type lines struct {
	breaks  string // the bytes that end a line
	max     int    // bytes of a line that are looked at; the rest is left out
	partial []byte // the begin of a line whose end has not come
	from    int64  // offset of the first byte of that line
	to      int64  // offset of the first byte that has not come
}

func (l *lines) start() int64 { return l.from }
func (l *lines) next() int64  { return l.to }

// add calls each with lines without the byte that ends them.
func (l *lines) add(p []byte, each func(line []byte)) {
	for len(p) > 0 {
		end := bytes.IndexAny(p, l.breaks)
		if end < 0 {
			l.keep(p)
			l.to += int64(len(p))
			return
		}
		line := p[:min(end, l.max)]
		if len(l.partial) > 0 {
			l.keep(line)
			line = l.partial
		}
		l.begin(l.to + int64(end) + 1)
		each(line)
		p = p[end+1:]
	}
}

func (l *lines) finish(each func(line []byte)) {
	line := l.partial
	l.begin(l.to)
	if len(line) > 0 {
		each(line)
	}
}

// keepCapacity bounds the memory in bytes that a stream holds between lines.
const keepCapacity = 4096

func (l *lines) begin(offset int64) {
	l.partial = l.partial[:0]
	if cap(l.partial) > keepCapacity {
		l.partial = nil
	}
	l.from, l.to = offset, offset
}

func (l *lines) keep(p []byte) {
	l.partial = append(l.partial, p[:min(len(p), l.max-len(l.partial))]...)
}
