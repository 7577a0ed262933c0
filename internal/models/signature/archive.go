// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// archive is a ZIP file, read in place. archive/zip would do, but for what a hostile
// file may have: it reads a directory of any length, and lets members overlap.
type archive struct {
	f       *file
	members map[string]member
}

// member is an entry of the central directory.
type member struct {
	name             string
	stored, unpacked int64
	header           int64
	crc              uint32
	method, flags    uint16
	// data is where its bytes start.
	data int64
}

// The signatures and sizes of ZIP records: APPNOTE.TXT 6.3.10, section 4.3.
const (
	zipLocal      = 0x04034b50
	zipCentral    = 0x02014b50
	zipEnd        = 0x06054b50
	zipEnd64      = 0x06064b50
	zipLocator64  = 0x07064b50
	zipLocalSize  = 30
	zipEntrySize  = 46
	zipEndSize    = 22
	zipEnd64Size  = 56
	zipMaxComment = 1<<16 - 1
)

var little = binary.LittleEndian

// archive reads the directory of a ZIP file and checks it: names stay inside, none
// occurs twice, and no two members share bytes.
func (f *file) archive() (*archive, error) {
	offset, length, count, err := f.zipDirectory()
	if err != nil {
		return nil, err
	}
	if count > uint64(f.r.limits.Files) {
		return nil, f.fail(offset, &LimitError{"Files", f.r.limits.Files})
	}
	if uint64(length) < count*zipEntrySize {
		return nil, f.errorf(offset, "the archive's directory claims %d members, for which its %d bytes are too few", count, length)
	}
	directory, err := f.bytes(offset, length, "the archive's directory")
	if err != nil {
		return nil, err
	}
	a := &archive{f: f, members: make(map[string]member, count)}
	for range count {
		at := offset + length - int64(len(directory))
		m, size, err := zipEntry(directory)
		if err != nil {
			return nil, f.fail(at, err)
		}
		directory = directory[size:]
		if err := f.r.visit(); err != nil {
			return nil, f.fail(at, err)
		}
		if err := f.r.hold(200); err != nil {
			return nil, f.fail(at, err)
		}
		if !fs.ValidPath(strings.TrimSuffix(m.name, "/")) || strings.ContainsAny(m.name, "\\\x00") {
			return nil, f.errorf(at, "the archive's member %q leads out of it", m.name)
		}
		if _, twice := a.members[m.name]; twice {
			return nil, f.errorf(at, "the archive has two members %q", m.name)
		}
		if m.header < 0 || m.stored < 0 || m.header > offset || m.stored > offset-m.header {
			return nil, f.errorf(at, "the archive's member %q is outside of the file", m.name)
		}
		a.members[m.name] = m
	}
	if err := a.place(offset); err != nil {
		return nil, err
	}
	return a, nil
}

// zipDirectory finds the central directory: its offset, length and number of entries.
func (f *file) zipDirectory() (offset, length int64, count uint64, err error) {
	tail := min(f.size, zipEndSize+zipMaxComment)
	data := make([]byte, tail)
	if err := f.readAt(data, f.size-tail); err != nil {
		return 0, 0, 0, err
	}
	at := -1
	for i := len(data) - zipEndSize; i >= 0; i-- {
		if little.Uint32(data[i:]) == zipEnd && int(little.Uint16(data[i+20:])) == len(data)-i-zipEndSize {
			at = i
			break
		}
	}
	if at < 0 {
		return 0, 0, 0, f.errorf(-1, "the archive has no directory at its end: the file is truncated or no ZIP file")
	}
	end := data[at:]
	position := f.size - tail + int64(at)
	if disk := little.Uint16(end[4:]); disk != 0 && disk != 0xffff {
		return 0, 0, 0, f.errorf(position, "the archive is one of several volumes")
	}
	count = uint64(little.Uint16(end[10:]))
	size, start := uint64(little.Uint32(end[12:])), uint64(little.Uint32(end[16:]))
	limit := position
	if count == 0xffff || size == 0xffffffff || start == 0xffffffff {
		if locator, err := f.need(max(0, position-20), 20); err == nil && little.Uint32(locator) == zipLocator64 {
			at := little.Uint64(locator[8:])
			if at > uint64(position) {
				return 0, 0, 0, f.errorf(position-20, "the archive's 64-bit directory is outside of the file")
			}
			record, err := f.need(int64(at), zipEnd64Size)
			if err != nil {
				return 0, 0, 0, err
			}
			if little.Uint32(record) != zipEnd64 {
				return 0, 0, 0, f.errorf(int64(at), "the archive's 64-bit directory is not where it should be")
			}
			count, size, start = little.Uint64(record[32:]), little.Uint64(record[40:]), little.Uint64(record[48:])
			limit = int64(at)
		}
	}
	if start > uint64(limit) || size > uint64(limit)-start {
		return 0, 0, 0, f.errorf(position, "the archive's directory is %d bytes at %d, outside of the file", size, start)
	}
	return int64(start), int64(size), count, nil
}

// zipEntry reads an entry of the central directory, and tells its size.
func zipEntry(data []byte) (member, int, error) {
	if len(data) < zipEntrySize || little.Uint32(data) != zipCentral {
		return member{}, 0, errors.New("the archive's directory is damaged")
	}
	nameLen, extraLen, commentLen := int(little.Uint16(data[28:])), int(little.Uint16(data[30:])), int(little.Uint16(data[32:]))
	size := zipEntrySize + nameLen + extraLen + commentLen
	if len(data) < size {
		return member{}, 0, errors.New("the archive's directory ends in the middle of an entry")
	}
	m := member{
		flags: little.Uint16(data[8:]), method: little.Uint16(data[10:]), crc: little.Uint32(data[16:]),
		stored: int64(little.Uint32(data[20:])), unpacked: int64(little.Uint32(data[24:])), header: int64(little.Uint32(data[42:])),
		name: string(data[zipEntrySize : zipEntrySize+nameLen]),
	}
	// The 64-bit extra field has those of the values that do not fit above, in this order.
	for extra := data[zipEntrySize+nameLen:][:extraLen]; len(extra) >= 4; {
		tag, n := little.Uint16(extra), int(little.Uint16(extra[2:]))
		if n > len(extra)-4 {
			break
		}
		if tag == 1 {
			body := extra[4 : 4+n]
			for _, value := range []*int64{&m.unpacked, &m.stored, &m.header} {
				if *value != 0xffffffff {
					continue
				}
				if len(body) < 8 {
					return member{}, 0, fmt.Errorf("the archive's member %q has no size", m.name)
				}
				*value, body = int64(little.Uint64(body)), body[8:]
			}
		}
		extra = extra[4+n:]
	}
	if m.unpacked < 0 {
		return member{}, 0, fmt.Errorf("the archive's member %q has no size", m.name)
	}
	return m, size, nil
}

// place finds where the data of each member starts and checks that they do not overlap.
func (a *archive) place(end int64) error {
	order := slices.SortedFunc(maps.Values(a.members), func(a, b member) int { return cmp.Compare(a.header, b.header) })
	for i, m := range order {
		header, err := a.f.need(m.header, zipLocalSize)
		if err != nil {
			return err
		}
		if little.Uint32(header) != zipLocal {
			return a.f.errorf(m.header, "the archive's member %q is not where its directory says", m.name)
		}
		m.data = m.header + zipLocalSize + int64(little.Uint16(header[26:])) + int64(little.Uint16(header[28:]))
		limit := end
		if i+1 < len(order) {
			limit = order[i+1].header
		}
		if m.data > limit || m.stored > limit-m.data {
			return a.f.errorf(m.header, "the archive's member %q overlaps what follows it", m.name)
		}
		a.members[m.name] = m
	}
	return nil
}

// names are the members' names, sorted.
func (a *archive) names() []string { return slices.Sorted(maps.Keys(a.members)) }

// has reports whether there is such a member.
func (a *archive) has(name string) bool {
	_, has := a.members[name]
	return has
}

// open opens a member. A stored one is read in place; a compressed one is unpacked into
// memory.
func (a *archive) open(name string) (*file, error) {
	m, ok := a.members[name]
	if !ok {
		return nil, a.f.errorf(-1, "the archive has no member %q", name)
	}
	f := &file{r: a.f.r, name: a.f.name, member: name, size: m.unpacked}
	if m.flags&1 != 0 {
		return nil, f.errorf(-1, "it is encrypted")
	}
	section := io.NewSectionReader(a.f.at, m.data, m.stored)
	switch m.method {
	case 0:
		if m.stored != m.unpacked {
			return nil, f.errorf(-1, "it is not compressed and yet has two sizes: %d and %d", m.stored, m.unpacked)
		}
		f.at = section
		return f, nil
	case 8:
	default:
		return nil, f.errorf(-1, "it is compressed with method %d: only deflate is known", m.method)
	}
	data, err := f.inflate(flate.NewReader(section), m.unpacked)
	if err != nil {
		return nil, err
	}
	if crc32.ChecksumIEEE(data) != m.crc {
		return nil, f.errorf(-1, "its checksum is wrong")
	}
	f.at = bytes.NewReader(data)
	return f, nil
}

// inflate unpacks exactly n bytes into memory.
func (f *file) inflate(in io.Reader, n int64) ([]byte, error) {
	if err := f.r.inflate(n); err != nil {
		return nil, f.fail(-1, err)
	}
	if err := f.r.hold(n); err != nil {
		return nil, f.fail(-1, err)
	}
	// The buffer grows with what there is: the size is only claimed.
	var data bytes.Buffer
	got, err := io.Copy(&data, io.LimitReader(in, n+1))
	if err != nil {
		return nil, f.errorf(-1, "cannot unpack it: %w", err)
	}
	if got != n {
		return nil, f.errorf(-1, "it unpacks to another size than the %d bytes that the archive claims", n)
	}
	return data.Bytes(), nil
}
