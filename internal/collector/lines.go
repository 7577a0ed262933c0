// SPDX-License-Identifier: Apache-2.0

package collector

import "bytes"

// lines cuts a sequence of bytes, which come in pieces, into lines.
type lines struct {
	breaks  string // the bytes that end a line
	max     int    // bytes of a line that are looked at; the rest is left out
	partial []byte // the begin of a line whose end has not come
	start   int64  // offset of the first byte of that line
	next    int64  // offset of the first byte that has not come
}

// add takes the next bytes and calls each with every line that they end,
// without the byte that ends it. The line is good only during the call, in
// which start is already the offset after it.
func (l *lines) add(p []byte, each func(line []byte)) {
	for len(p) > 0 {
		end := bytes.IndexAny(p, l.breaks)
		if end < 0 {
			l.keep(p)
			l.next += int64(len(p))
			return
		}
		line := p[:min(end, l.max)]
		if len(l.partial) > 0 {
			l.keep(line)
			line = l.partial
		}
		l.begin(l.next + int64(end) + 1)
		each(line)
		p = p[end+1:]
	}
}

// finish calls each with the line that has no end, if there is one.
func (l *lines) finish(each func(line []byte)) {
	line := l.partial
	l.begin(l.next)
	if len(line) > 0 {
		each(line)
	}
}

// keepCapacity bounds the memory in bytes that a stream holds between lines.
const keepCapacity = 4096

// begin forgets the partial line and goes on at an offset, where a line begins.
func (l *lines) begin(offset int64) {
	l.partial = l.partial[:0]
	if cap(l.partial) > keepCapacity {
		l.partial = nil
	}
	l.start, l.next = offset, offset
}

func (l *lines) keep(p []byte) {
	l.partial = append(l.partial, p[:min(len(p), l.max-len(l.partial))]...)
}
