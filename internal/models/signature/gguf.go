// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"regexp"
	"strconv"
)

// ggufType is how a tensor is stored: blocks of some elements in some bytes.
type ggufType struct {
	name            string
	elements, bytes int64
}

// ggufTypes are the element types by number; types that were removed from GGML are
// missing. https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
var ggufTypes = map[uint32]ggufType{
	0: {"float32", 1, 4}, 1: {"float16", 1, 2},
	2: {"Q4_0", 32, 18}, 3: {"Q4_1", 32, 20}, 6: {"Q5_0", 32, 22}, 7: {"Q5_1", 32, 24}, 8: {"Q8_0", 32, 34}, 9: {"Q8_1", 32, 40},
	10: {"Q2_K", 256, 84}, 11: {"Q3_K", 256, 110}, 12: {"Q4_K", 256, 144}, 13: {"Q5_K", 256, 176}, 14: {"Q6_K", 256, 210}, 15: {"Q8_K", 256, 292},
	16: {"IQ2_XXS", 256, 66}, 17: {"IQ2_XS", 256, 74}, 18: {"IQ3_XXS", 256, 98}, 19: {"IQ1_S", 256, 50}, 20: {"IQ4_NL", 32, 18},
	21: {"IQ3_S", 256, 110}, 22: {"IQ2_S", 256, 82}, 23: {"IQ4_XS", 256, 136},
	24: {"int8", 1, 1}, 25: {"int16", 1, 2}, 26: {"int32", 1, 4}, 27: {"int64", 1, 8}, 28: {"float64", 1, 8},
	29: {"IQ1_M", 256, 56}, 30: {"bfloat16", 1, 2}, 34: {"TQ1_0", 256, 54}, 35: {"TQ2_0", 256, 66},
	39: {"MXFP4", 32, 17}, 40: {"NVFP4", 64, 36}, 41: {"Q1_0", 128, 18},
}

// ggufFileTypes are the values of general.file_type.
var ggufFileTypes = map[uint64]string{
	0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K", 11: "Q3_K_S", 12: "Q3_K_M", 13: "Q3_K_L",
	14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS", 20: "IQ2_XS", 21: "Q2_K_S", 22: "IQ3_XS",
	23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S", 29: "IQ2_M", 30: "IQ4_XS", 31: "IQ1_M", 32: "BF16",
	36: "TQ1_0", 37: "TQ2_0", 38: "MXFP4_MOE", 39: "NVFP4", 40: "Q1_0",
}

// The types of metadata values.
const (
	ggufUint8 = iota
	ggufInt8
	ggufUint16
	ggufInt16
	ggufUint32
	ggufInt32
	ggufFloat32
	ggufBool
	ggufString
	ggufArray
	ggufUint64
	ggufInt64
	ggufFloat64
)

var ggufWidths = map[uint32]int{
	ggufUint8: 1, ggufInt8: 1, ggufBool: 1, ggufUint16: 2, ggufInt16: 2,
	ggufUint32: 4, ggufInt32: 4, ggufFloat32: 4, ggufUint64: 8, ggufInt64: 8, ggufFloat64: 8,
}

// ggufLongText is the longest text that is kept of a model's metadata, in bytes. Chat
// templates are longer and say nothing of the signature.
const ggufLongText = 1024

// ggufSplit is the name of one of several files: its prefix, number and their count.
var ggufSplit = regexp.MustCompile(`^(.*)-(\d{5})-of-(\d{5})\.gguf$`)

// readGGUF reads one file, or all that a model was split into, given any one of them.
func readGGUF(r *reading, f *file) error {
	r.sig.note("the format describes no inputs and outputs: they follow from general.architecture")
	split := ggufSplit.FindStringSubmatch(f.name)
	if split == nil {
		return readGGUFFile(r, f)
	}
	count, _ := strconv.ParseInt(split[3], 10, 64)
	if count > r.limits.Files {
		return &LimitError{"Files", r.limits.Files}
	}
	for i := int64(1); i <= count; i++ {
		part, err := r.file(fmt.Sprintf("%s-%05d-of-%05d.gguf", split[1], i, count))
		if err != nil {
			return err
		}
		r.addFile(part)
		if err := readGGUFFile(r, part); err != nil {
			return part.fail(-1, err)
		}
		if part != f {
			r.done(part)
		}
	}
	return nil
}

// ggufReader reads a file in sequence.
type ggufReader struct {
	f       *file
	at      int64
	order   binary.ByteOrder
	version uint32
}

func readGGUFFile(r *reading, f *file) error {
	g := &ggufReader{f: f, at: 4, order: binary.LittleEndian}
	magic, err := f.need(0, 4)
	if err != nil {
		return err
	}
	if string(magic) != "GGUF" {
		return f.errorf(0, "it starts with %q, not with GGUF", magic)
	}
	if g.version, err = g.u32(); err != nil {
		return err
	}
	// Files for big-endian machines differ in nothing but the byte order.
	if swapped := bits.ReverseBytes32(g.version); g.version > 0xffff && swapped <= 0xffff {
		g.order, g.version = binary.BigEndian, swapped
		r.sig.setMetadata("byteorder", "big")
	}
	if g.version < 1 || g.version > 3 {
		return f.errorf(4, "GGUF version %d is not known: 1 to 3 are", g.version)
	}
	r.sig.FormatVersion = strconv.FormatUint(uint64(g.version), 10)
	tensors, err := g.count()
	if err != nil {
		return err
	}
	entries, err := g.count()
	if err != nil {
		return err
	}
	// The smallest entries have 13 bytes (key, type, one byte) and 24 (name, rank, type, offset).
	if left := uint64(f.size - g.at); entries > left/13 || tensors > left/20 {
		return f.errorf(8, "%d tensors and %d metadata entries do not fit into %d bytes", tensors, entries, f.size)
	}
	alignment := uint64(32)
	for range entries {
		key, err := g.text()
		if err != nil {
			return err
		}
		at := g.at
		kind, err := g.u32()
		if err != nil {
			return err
		}
		text, err := g.value(kind, 0)
		if err != nil {
			return err
		}
		r.sig.setMetadata(key, text)
		switch key {
		case "general.alignment":
			if alignment, err = strconv.ParseUint(text, 10, 32); err != nil || alignment == 0 || alignment%8 != 0 {
				return f.errorf(at, "general.alignment is %q, not a multiple of 8", text)
			}
		case "general.file_type":
			number, _ := strconv.ParseUint(text, 10, 64)
			r.sig.Quantization = ggufFileTypes[number&^1024] // 1024: guessed
		}
	}
	type stored struct {
		name          string
		offset, bytes uint64
	}
	var all []stored
	names := map[string]bool{}
	for range tensors {
		at := g.at
		name, err := g.text()
		if err != nil {
			return err
		}
		if names[name] {
			return f.errorf(at, "there are two tensors %q", name)
		}
		names[name] = true
		rank, err := g.u32()
		if err != nil {
			return err
		}
		if rank > 8 {
			return f.errorf(at, "tensor %q has %d dimensions: GGML has at most 4", name, rank)
		}
		shape := make(Shape, rank)
		for i := range shape {
			dim, err := g.count()
			if err != nil {
				return err
			}
			if dim > math.MaxInt64 {
				return f.errorf(at, "tensor %q has a dimension of %d", name, dim)
			}
			// They are stored innermost first.
			shape[len(shape)-1-i] = Dim{Size: int64(dim)}
		}
		number, err := g.u32()
		if err != nil {
			return err
		}
		kind, known := ggufTypes[number]
		if !known {
			return f.errorf(at, "tensor %q has the unknown type %d", name, number)
		}
		offset, err := g.u64()
		if err != nil {
			return err
		}
		n, err := shape.elements()
		if err != nil {
			return f.errorf(at, "tensor %q: %w", name, err)
		}
		if rank > 0 && shape[rank-1].Size%kind.elements != 0 {
			return f.errorf(at, "tensor %q: rows of %d elements are not whole blocks of %s", name, shape[rank-1].Size, kind.name)
		}
		high, size := bits.Mul64(uint64(n/kind.elements), uint64(kind.bytes))
		if high != 0 || offset > math.MaxInt64 || size > math.MaxInt64 {
			return f.errorf(at, "tensor %q: %s of the shape %v cannot be in a file", name, kind.name, shape)
		}
		if offset%alignment != 0 {
			return f.errorf(at, "tensor %q starts at byte %d of the data, which is not aligned to %d", name, offset, alignment)
		}
		if err := r.addTensor(Tensor{Name: name, Type: kind.name, Shape: shape}); err != nil {
			return f.fail(at, err)
		}
		if err := r.hold(100); err != nil {
			return f.fail(at, err)
		}
		all = append(all, stored{name, offset, size})
	}
	start := (uint64(g.at) + alignment - 1) / alignment * alignment
	for _, t := range all {
		if end := start + t.offset + t.bytes; end > uint64(f.size) {
			return f.errorf(-1, "tensor %q ends at byte %d, the file at %d: it is truncated", t.name, end, f.size)
		}
	}
	if r.sig.Parameters == nil {
		r.sig.addParameters(0)
	}
	return nil
}

func (g *ggufReader) u32() (uint32, error) {
	value, err := g.f.u32(g.at, g.order)
	g.at += 4
	return value, err
}

func (g *ggufReader) u64() (uint64, error) {
	value, err := g.f.u64(g.at, g.order)
	g.at += 8
	return value, err
}

// count is a length or a number of things: 32 bits in version 1, 64 since.
func (g *ggufReader) count() (uint64, error) {
	if g.version == 1 {
		value, err := g.u32()
		return uint64(value), err
	}
	return g.u64()
}

// length is the length of a text, checked against what is left.
func (g *ggufReader) length() (int64, error) {
	n, err := g.count()
	if err == nil && n > uint64(max(0, g.f.size-g.at)) {
		err = g.f.errorf(g.at, "a text claims %d bytes, more than the rest of the file", n)
	}
	return int64(n), err
}

func (g *ggufReader) text() (string, error) {
	if err := g.f.r.visit(); err != nil {
		return "", g.f.fail(g.at, err)
	}
	n, err := g.length()
	if err != nil {
		return "", err
	}
	text, err := g.f.text(g.at, n, "a text")
	g.at += n
	if err == nil {
		err = g.f.r.hold(32)
	}
	return text, err
}

// value reads a metadata value. Arrays and long texts are told by their length.
func (g *ggufReader) value(kind uint32, depth int) (string, error) {
	f, at := g.f, g.at
	if err := f.r.visit(); err != nil {
		return "", f.fail(at, err)
	}
	switch kind {
	case ggufString:
		n, err := g.length()
		if err != nil {
			return "", err
		}
		at := g.at
		g.at += n
		if n > ggufLongText {
			return fmt.Sprintf("(%d bytes)", n), nil
		}
		return f.text(at, n, "a text")
	case ggufArray:
		return g.array(depth + 1)
	}
	width, known := ggufWidths[kind]
	if !known {
		return "", f.errorf(at, "a metadata value has the unknown type %d", kind)
	}
	data, err := f.need(at, width)
	if err != nil {
		return "", err
	}
	g.at += int64(width)
	wide := make([]byte, 8)
	var value uint64
	if g.order == binary.ByteOrder(binary.LittleEndian) {
		copy(wide, data)
		value = binary.LittleEndian.Uint64(wide)
	} else {
		copy(wide[8-width:], data)
		value = binary.BigEndian.Uint64(wide)
	}
	switch kind {
	case ggufBool:
		return strconv.FormatBool(value != 0), nil
	case ggufFloat32:
		return strconv.FormatFloat(float64(math.Float32frombits(uint32(value))), 'g', -1, 32), nil
	case ggufFloat64:
		return strconv.FormatFloat(math.Float64frombits(value), 'g', -1, 64), nil
	case ggufInt8:
		return strconv.Itoa(int(int8(value))), nil
	case ggufInt16:
		return strconv.Itoa(int(int16(value))), nil
	case ggufInt32:
		return strconv.Itoa(int(int32(value))), nil
	case ggufInt64:
		return strconv.FormatInt(int64(value), 10), nil
	}
	return strconv.FormatUint(value, 10), nil
}

func (g *ggufReader) array(depth int) (string, error) {
	f, at := g.f, g.at
	if err := f.r.nest(depth); err != nil {
		return "", f.fail(at, err)
	}
	kind, err := g.u32()
	if err != nil {
		return "", err
	}
	n, err := g.count()
	if err != nil {
		return "", err
	}
	left := uint64(max(0, f.size-g.at))
	if width, fixed := ggufWidths[kind]; fixed {
		if n > left/uint64(width) {
			return "", f.errorf(at, "an array claims %d items of %d bytes, more than the rest of the file", n, width)
		}
		g.at += int64(n) * int64(width)
		return fmt.Sprintf("(%d items)", n), nil
	}
	switch kind {
	case ggufString:
		for range n {
			if err := f.r.visit(); err != nil {
				return "", f.fail(g.at, err)
			}
			length, err := g.length()
			if err != nil {
				return "", err
			}
			g.at += length
		}
	case ggufArray:
		for range n {
			if err := f.r.visit(); err != nil {
				return "", f.fail(g.at, err)
			}
			if _, err := g.array(depth + 1); err != nil {
				return "", err
			}
		}
	default:
		return "", f.fail(at, errors.New("an array has items of the unknown type "+strconv.FormatUint(uint64(kind), 10)))
	}
	return fmt.Sprintf("(%d items)", n), nil
}
