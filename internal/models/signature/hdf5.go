// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
)

// As much of HDF5 as Keras writes: groups, the shapes and types of datasets, and
// attributes that are texts. Data is not read.
// https://support.hdfgroup.org/documentation/hdf5/latest/_f_m_t3.html

const hdf5Magic = "\x89HDF\r\n\x1a\n"

// hdf5 is an open HDF5 file.
type hdf5 struct {
	f    *file
	base uint64
	root uint64
	// seen are the objects on which visit was, so that links in a circle end.
	seen map[uint64]bool
	// datasets are told of every dataset, texts of every attribute that is a text.
	dataset func(path string, t Tensor) error
	text    func(path, name, value string) error
	// partial says that something is stored in a way that is not read.
	partial bool
}

// hdf5 finds the superblock: it is at the start or, after a user's block, at 512, 1024, ….
func (f *file) hdf5() (*hdf5, error) {
	for at := int64(0); at+96 <= f.size && at <= 1<<20; at = max(512, 2*at) {
		magic, err := f.need(at, 8)
		if err != nil {
			return nil, err
		}
		if string(magic) == hdf5Magic {
			return f.superblock(at)
		}
	}
	return nil, f.errorf(0, "it has no superblock: this is no HDF5 file, or a truncated one")
}

func (f *file) superblock(at int64) (*hdf5, error) {
	h := &hdf5{f: f, base: uint64(at), seen: map[uint64]bool{}}
	head, err := f.bytes(at, 96, "the superblock")
	if err != nil {
		return nil, err
	}
	widths, root := head[13:15], 24+32+8
	switch version := head[8]; version {
	case 0:
	case 1:
		root += 4
	case 2, 3:
		widths, root = head[9:11], 12+24
	default:
		return nil, f.errorf(at, "superblock version %d is not known", version)
	}
	if widths[0] != 8 || widths[1] != 8 {
		return nil, f.errorf(at, "%w: it has offsets of %d and lengths of %d bytes, where 8 are usual", ErrUnsupported, widths[0], widths[1])
	}
	h.root = little.Uint64(head[root:])
	return h, nil
}

// at checks an address, of which n bytes are needed, and makes it an offset.
func (h *hdf5) at(address uint64, n int64) (int64, error) {
	if address > uint64(h.f.size) || address+h.base > uint64(h.f.size) {
		return 0, h.f.errorf(-1, "the address %#x is outside of the file", address)
	}
	offset := int64(address + h.base)
	return offset, h.f.span(offset, n, "what is there")
}

// hdf5Message is a message of an object header.
type hdf5Message struct {
	kind   uint16
	offset int64
	data   []byte
}

// walk visits the object at an address and everything below it.
func (h *hdf5) walk(path string, address uint64, depth int) error {
	if err := h.f.r.nest(depth); err != nil {
		return h.f.fail(int64(min(address, math.MaxInt64)), err)
	}
	if h.seen[address] {
		return nil
	}
	h.seen[address] = true
	if err := h.f.r.hold(64 + int64(len(path))); err != nil {
		return h.f.fail(-1, err)
	}
	messages, err := h.header(address)
	if err != nil {
		return err
	}
	var shape, kind []byte
	for _, m := range messages {
		var err error
		switch m.kind {
		case 0x01:
			shape = m.data
		case 0x03:
			kind = m.data
		case 0x02, 0x15: // link info, attribute info: where many of them are
			h.partial = h.partial || denselyStored(m)
		case 0x06:
			err = h.link(path, m, depth)
		case 0x0c:
			err = h.attribute(path, m)
		case 0x11:
			err = h.symbols(path, m, depth)
		}
		if err != nil {
			return h.f.fail(m.offset, err)
		}
	}
	if shape == nil || kind == nil || h.dataset == nil {
		return nil
	}
	t := Tensor{Name: path}
	if t.Shape, err = dataspace(shape); err == nil {
		t.Type, _, err = datatype(kind)
	}
	if err != nil {
		return h.f.errorf(int64(address), "%s: %w", path, err)
	}
	return h.f.fail(int64(address), h.dataset(path, t))
}

// denselyStored reports whether a link info or attribute info message names a heap.
func denselyStored(m hdf5Message) bool {
	at := 2
	if len(m.data) > 1 && m.data[1]&1 != 0 {
		at += map[uint16]int{0x02: 8, 0x15: 2}[m.kind]
	}
	return len(m.data) >= at+8 && little.Uint64(m.data[at:]) != math.MaxUint64
}

// header reads the messages of an object header of either version.
func (h *hdf5) header(address uint64) ([]hdf5Message, error) {
	at, err := h.at(address, 16)
	if err != nil {
		return nil, err
	}
	head, err := h.f.bytes(at, 16, "an object header")
	if err != nil {
		return nil, err
	}
	type block struct{ offset, size int64 }
	var blocks []block
	second := string(head[:4]) == "OHDR"
	order := false
	switch {
	case second:
		flags := head[5]
		order = flags&4 != 0
		size := at + 6
		if flags&0x20 != 0 {
			size += 16
		}
		if flags&0x10 != 0 {
			size += 4
		}
		width := 1 << (flags & 3)
		data, err := h.f.need(size, width)
		if err != nil {
			return nil, err
		}
		var wide [8]byte
		copy(wide[:], data)
		blocks = []block{{size + int64(width), int64(min(little.Uint64(wide[:]), math.MaxInt64))}}
	case head[0] == 1:
		blocks = []block{{at + 16, int64(little.Uint32(head[8:]))}}
	default:
		return nil, h.f.errorf(at, "there is no object header")
	}
	var messages []hdf5Message
	for len(blocks) > 0 {
		b := blocks[0]
		blocks = blocks[1:]
		if err := h.f.span(b.offset, b.size, "an object header"); err != nil {
			return nil, err
		}
		head := int64(8)
		if second {
			head = 4
			if order {
				head += 2
			}
		}
		for at, end := b.offset, b.offset+b.size; at+head <= end; {
			if err := h.f.r.visit(); err != nil {
				return nil, h.f.fail(at, err)
			}
			data, err := h.f.need(at, int(head))
			if err != nil {
				return nil, err
			}
			m := hdf5Message{kind: little.Uint16(data), offset: at + head}
			size := int64(little.Uint16(data[2:]))
			if second {
				m.kind, size = uint16(data[0]), int64(little.Uint16(data[1:]))
			}
			if size > end-m.offset {
				return nil, h.f.errorf(at, "a message of an object header is longer than the header")
			}
			at = m.offset + size
			if m.kind == 0 {
				continue
			}
			if m.data, err = h.f.bytes(m.offset, size, "a message of an object header"); err != nil {
				return nil, err
			}
			if err := h.f.r.hold(64); err != nil {
				return nil, h.f.fail(at, err)
			}
			if m.kind != 0x10 {
				messages = append(messages, m)
				continue
			}
			// A continuation.
			if len(m.data) < 16 || little.Uint64(m.data[8:]) > uint64(h.f.size) {
				return nil, h.f.errorf(m.offset, "a continuation of an object header leads nowhere")
			}
			next := block{size: int64(little.Uint64(m.data[8:]))}
			if next.offset, err = h.at(little.Uint64(m.data), next.size); err != nil {
				return nil, err
			}
			if second {
				// Between a signature and a checksum.
				next.offset, next.size = next.offset+4, next.size-8
			}
			if next.size > 0 {
				blocks = append(blocks, next)
			}
		}
	}
	return messages, nil
}

var errHDF5 = errors.New("a message of an object header is damaged")

// link reads a link message, and visits what a hard link leads to.
func (h *hdf5) link(path string, m hdf5Message, depth int) error {
	data := m.data
	if len(data) < 2 {
		return errHDF5
	}
	flags, at, kind := data[1], 2, byte(0)
	if flags&8 != 0 && len(data) > at {
		kind = data[at]
		at++
	}
	if flags&4 != 0 {
		at += 8
	}
	if flags&16 != 0 {
		at++
	}
	width := 1 << (flags & 3)
	if len(data) < at+width {
		return errHDF5
	}
	var wide [8]byte
	copy(wide[:], data[at:at+width])
	length := little.Uint64(wide[:])
	at += width
	if kind != 0 {
		return nil // a soft or external link
	}
	if length > uint64(len(data)-at) || len(data)-at-int(length) < 8 {
		return errHDF5
	}
	name := strings.ToValidUTF8(string(data[at:at+int(length)]), "\ufffd")
	return h.walk(below(path, name), little.Uint64(data[at+int(length):]), depth+1)
}

func below(path, name string) string {
	if path == "" {
		return name
	}
	return path + "/" + name
}

// symbols visits the members of a group by its symbol table: a B-tree of nodes, whose
// names are in a heap.
func (h *hdf5) symbols(path string, m hdf5Message, depth int) error {
	if len(m.data) < 16 {
		return errHDF5
	}
	at, err := h.at(little.Uint64(m.data[8:]), 32)
	if err != nil {
		return err
	}
	heap, err := h.f.bytes(at, 32, "a heap")
	if err != nil {
		return err
	}
	if string(heap[:4]) != "HEAP" {
		return h.f.errorf(at, "there is no heap of names")
	}
	size := little.Uint64(heap[8:])
	if size > uint64(h.f.size) {
		return h.f.errorf(at, "a heap of names has %d bytes, more than the file", size)
	}
	names, err := h.at(little.Uint64(heap[24:]), int64(size))
	if err != nil {
		return err
	}
	return h.tree(path, little.Uint64(m.data), names, int64(size), depth)
}

func (h *hdf5) tree(path string, address uint64, names, size int64, depth int) error {
	if err := h.f.r.nest(depth); err != nil {
		return err
	}
	if h.seen[address] {
		return nil
	}
	h.seen[address] = true
	at, err := h.at(address, 8)
	if err != nil {
		return err
	}
	head, err := h.f.need(at, 8)
	if err != nil {
		return err
	}
	signature, count := string(head[:4]), int64(little.Uint16(head[6:]))
	switch signature {
	case "TREE":
		data, err := h.f.bytes(at+24, count*16, "a node of a tree")
		if err != nil {
			return err
		}
		for ; len(data) > 0; data = data[16:] {
			if err := h.tree(path, little.Uint64(data[8:]), names, size, depth+1); err != nil {
				return err
			}
		}
		return nil
	case "SNOD":
		data, err := h.f.bytes(at+8, count*40, "a node of a group")
		if err != nil {
			return err
		}
		for ; len(data) > 0; data = data[40:] {
			offset := little.Uint64(data)
			if offset >= uint64(size) {
				return h.f.errorf(at, "a name is outside of its heap")
			}
			text, err := h.f.peek(names+int64(offset), int(min(1024, size-int64(offset))))
			if err != nil {
				return err
			}
			end := bytes.IndexByte(text, 0)
			if end < 0 {
				return h.f.errorf(at, "a name has no end")
			}
			name := strings.ToValidUTF8(string(text[:end]), "\ufffd")
			if err := h.walk(below(path, name), little.Uint64(data[8:]), depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	return h.f.errorf(at, "there is no node of a group")
}

// attribute reads an attribute that is one text.
func (h *hdf5) attribute(path string, m hdf5Message) error {
	data := m.data
	if len(data) < 8 {
		return errHDF5
	}
	version := data[0]
	if version < 1 || version > 3 {
		return fmt.Errorf("%w: an attribute of version %d", errHDF5, version)
	}
	sizes := []int{int(little.Uint16(data[2:])), int(little.Uint16(data[4:])), int(little.Uint16(data[6:]))}
	data = data[8:]
	if version == 3 && len(data) > 0 {
		data = data[1:]
	}
	var parts [3][]byte
	for i, size := range sizes {
		if size > len(data) {
			return errHDF5
		}
		parts[i] = data[:size]
		if version == 1 {
			size = min((size+7)/8*8, len(data))
		}
		data = data[size:]
	}
	name := strings.ToValidUTF8(string(bytes.TrimRight(parts[0], "\x00")), "\ufffd")
	shape, err := dataspace(parts[2])
	if err != nil {
		return err
	}
	if n, err := shape.elements(); err != nil || n != 1 || h.text == nil {
		return nil
	}
	kind, size, err := datatype(parts[1])
	if err != nil || kind != "string" {
		return nil
	}
	if parts[1][0]&0x0f == 3 {
		if size > int64(len(data)) {
			return errHDF5
		}
		return h.text(path, name, strings.ToValidUTF8(string(bytes.TrimRight(data[:size], "\x00")), "\ufffd"))
	}
	if len(data) < 16 {
		return errHDF5
	}
	value, err := h.global(little.Uint64(data[4:]), little.Uint32(data[12:]), int64(little.Uint32(data)))
	if err != nil {
		return err
	}
	return h.text(path, name, value)
}

// global reads a text of n bytes from a global heap.
func (h *hdf5) global(address uint64, index uint32, n int64) (string, error) {
	if n == 0 {
		return "", nil
	}
	at, err := h.at(address, 16)
	if err != nil {
		return "", err
	}
	head, err := h.f.need(at, 16)
	if err != nil {
		return "", err
	}
	if string(head[:4]) != "GCOL" {
		return "", h.f.errorf(at, "there is no heap of texts")
	}
	size := little.Uint64(head[8:])
	if size > uint64(h.f.size-at) {
		return "", h.f.errorf(at, "a heap of texts is longer than the file")
	}
	end := at + int64(size)
	for at += 16; at+16 <= end; {
		if err := h.f.r.visit(); err != nil {
			return "", h.f.fail(at, err)
		}
		object, err := h.f.need(at, 16)
		if err != nil {
			return "", err
		}
		number, length := little.Uint16(object), little.Uint64(object[8:])
		if length > uint64(end-at-16) {
			return "", h.f.errorf(at, "a text is longer than its heap")
		}
		if uint32(number) == index && number != 0 {
			if n > int64(length) {
				return "", h.f.errorf(at, "a text has %d bytes, of which %d are stored", n, length)
			}
			text, err := h.f.text(at+16, n, "a text")
			return strings.ToValidUTF8(text, "\ufffd"), err
		}
		if number == 0 {
			break
		}
		at += 16 + int64(length+7)/8*8
	}
	return "", h.f.errorf(at, "text %d is not in its heap", index)
}

// dataspace reads a shape.
func dataspace(data []byte) (Shape, error) {
	if len(data) < 4 {
		return nil, errHDF5
	}
	rank, at := int(data[1]), 8
	switch data[0] {
	case 1:
	case 2:
		if at = 4; data[3] == 2 {
			return Fixed(0), nil // nothing is stored
		}
	default:
		return nil, fmt.Errorf("%w: a dataspace of version %d", errHDF5, data[0])
	}
	if rank > 32 || len(data) < at+8*rank {
		return nil, fmt.Errorf("%w: a dataspace of rank %d", errHDF5, rank)
	}
	shape := Shape{}
	for i := range rank {
		size := little.Uint64(data[at+8*i:])
		if size > math.MaxInt64 {
			return nil, fmt.Errorf("a dimension is %d", size)
		}
		shape = append(shape, Dim{Size: int64(size)})
	}
	return shape, nil
}

// datatype reads a type's name and size in bytes.
func datatype(data []byte) (string, int64, error) {
	if len(data) < 8 {
		return "", 0, errHDF5
	}
	class, signed, size := data[0]&0x0f, data[1]&8 != 0, int64(little.Uint32(data[4:]))
	switch class {
	case 0:
		if signed {
			return fmt.Sprintf("int%d", 8*size), size, nil
		}
		return fmt.Sprintf("uint%d", 8*size), size, nil
	case 1:
		return fmt.Sprintf("float%d", 8*size), size, nil
	case 3:
		return "string", size, nil
	case 8:
		return "bool", size, nil // what h5py makes of NumPy's bool is an enumeration
	case 9:
		if data[1]&0x0f == 1 {
			return "string", size, nil
		}
	}
	return "", size, nil
}
