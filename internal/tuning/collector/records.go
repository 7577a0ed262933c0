// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"encoding/binary"
	"hash/crc32"
)

// The frame of a TFRecord: eight bytes of length, four of their checksum, the
// data, four of its checksum; all little-endian.
const (
	recordHeader  = 12
	recordTrailer = 4
	// longestRecord is far more than anyone writes: a header that says more is
	// damaged.
	longestRecord = 1 << 40
)

// records cuts a TFRecord file, which comes in pieces, into the data of its
// records. A record whose data is damaged is left out. Where a header is
// damaged, it goes on at the next header that is whole.
type records struct {
	max     int                  // bytes of data; longer records are left out
	damaged func(from, to int64) // told of bytes that were no records

	partial []byte // what has come of the record at from
	from    int64
	to      int64
	pass    int64 // bytes to come of a record that is too long, whose begin is dropped
	scanned int64 // of the bytes before from, how many were no record, and no one was told
}

func (r *records) start() int64 { return r.from }
func (r *records) next() int64  { return r.to }

func (r *records) begin(offset int64) {
	r.partial, r.from, r.to, r.pass, r.scanned = nil, offset, offset, 0, 0
}

func (r *records) add(p []byte, each func(data []byte)) {
	r.to += int64(len(p))
	p = p[r.passBy(p):]
	r.partial = append(r.partial, p...)
	rest, more := r.partial, true
	for more {
		rest, more = r.cut(rest, each)
	}
	r.keep(rest)
}

// passBy counts the bytes of p that belong to a record that is too long.
func (r *records) passBy(p []byte) int64 {
	n := min(r.pass, int64(len(p)))
	if r.pass -= n; n > 0 && r.pass == 0 {
		r.from = r.to - int64(len(p)) + n
	}
	return n
}

// cut takes what is at the begin of rest, a record or bytes that are none, and
// returns what is after it. more is false when it has to wait for more bytes.
func (r *records) cut(rest []byte, each func(data []byte)) (left []byte, more bool) {
	if len(rest) < recordHeader {
		return rest, false
	}
	length, ok := header(rest)
	if !ok {
		return r.scan(rest), true
	}
	r.tell()
	size := recordHeader + length + recordTrailer
	if have := int64(len(rest)); have < size {
		if length <= int64(r.max) {
			return rest, false
		}
		r.pass = size - have // from stays until all of it has come
		return nil, false
	}
	data := rest[recordHeader : recordHeader+length]
	r.from += size
	if checksum(data) != binary.LittleEndian.Uint32(rest[recordHeader+length:]) {
		r.scanned = size
		r.tell()
	} else if length <= int64(r.max) {
		each(data)
	}
	return rest[size:], true
}

// scan drops bytes until a header or too few for one are left.
func (r *records) scan(rest []byte) []byte {
	n := 1
	for ; n+recordHeader <= len(rest); n++ {
		if _, ok := header(rest[n:]); ok {
			break
		}
	}
	r.from += int64(n)
	r.scanned += int64(n)
	return rest[n:]
}

func (r *records) tell() {
	if r.scanned > 0 && r.damaged != nil {
		r.damaged(r.from-r.scanned, r.from)
	}
	r.scanned = 0
}

// keep holds what is left of the bytes that came.
func (r *records) keep(rest []byte) {
	if len(rest) == 0 && cap(r.partial) > keepCapacity {
		r.partial = nil
		return
	}
	r.partial = append(r.partial[:0], rest...)
}

// finish tells of bytes at the end that were no records. A record that was cut
// short, as the end of a program leaves it, is no damage.
func (r *records) finish(func(data []byte)) { r.tell() }

// header reads the header of a record: the length of its data.
func header(p []byte) (length int64, ok bool) {
	n := binary.LittleEndian.Uint64(p)
	return int64(n), n <= longestRecord && checksum(p[:8]) == binary.LittleEndian.Uint32(p[8:])
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum is TFRecord's: CRC-32C, turned and shifted, so that the checksum of
// data that holds checksums is a good one too.
func checksum(p []byte) uint32 {
	crc := crc32.Checksum(p, castagnoli)
	return (crc>>15 | crc<<17) + 0xa282ead8
}
