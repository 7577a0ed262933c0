// SPDX-License-Identifier: Apache-2.0

package onnx

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"diwan.dev/diwan/internal/platform/durable"
)

const (
	// maxInline is the largest model in one file: a protobuf message has less than 2 GiB.
	maxInline = 1<<31 - 1<<20
	// minExternal is the smallest tensor that goes to another file.
	minExternal = 1 << 10
	// alignment of tensors in another file, so that these can be mapped.
	alignment = 4096
)

// segments are a message: bytes, and values that are read when they are written.
type segments struct {
	parts []Values
	size  int64
}

func (s *segments) add(b []byte) { s.values(Bytes(b)) }

func (s *segments) values(v Values) {
	s.parts = append(s.parts, v)
	s.size += v.Size()
}

// message adds a message as a field.
func (s *segments) message(num protowire.Number, m segments) {
	s.add(protowire.AppendVarint(protowire.AppendTag(nil, num, protowire.BytesType), uint64(m.size)))
	s.parts = append(s.parts, m.parts...)
	s.size += m.size
}

func (s *segments) WriteTo(w io.Writer) (int64, error) {
	var written int64
	for _, part := range s.parts {
		n, err := part.WriteTo(w)
		written += n
		if err != nil {
			return written, err
		}
		if n != part.Size() {
			return written, fmt.Errorf("%d bytes of values were written, not %d", n, part.Size())
		}
	}
	return written, nil
}

// Size is the number of bytes that WriteTo writes.
func (m *Model) Size() int64 { s := m.segments(nil); return s.size }

// WriteTo writes the model with all its values.
func (m *Model) WriteTo(w io.Writer) (int64, error) { s := m.segments(nil); return s.WriteTo(w) }

// WriteFile writes the model to a file, which appears when it is complete, and returns the
// number of bytes. Of a model of 2 GiB or more the tensors go to another file, named as
// the model with .data behind it.
func (m *Model) WriteFile(ctx context.Context, path string) (int64, error) {
	return m.writeFile(ctx, path, maxInline)
}

func (m *Model) writeFile(ctx context.Context, path string, inline int64) (int64, error) {
	s := m.segments(nil)
	if s.size <= inline {
		return s.size, create(ctx, path, &s)
	}
	o := outsourced{location: filepath.Base(path) + ".data"}
	s = m.segments(&o)
	if s.size > inline {
		return 0, fmt.Errorf("write %s: it has %d bytes without its tensors, a message at most %d", path, s.size, inline)
	}
	if err := create(ctx, path+".data", &o.data); err != nil {
		return 0, err
	}
	return s.size + o.data.size, create(ctx, path, &s)
}

// create writes a file, which replaces another when it is complete.
func create(ctx context.Context, path string, s *segments) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), durable.TempPrefix)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			file.Close()
			os.Remove(file.Name())
		}
	}()
	w := bufio.NewWriterSize(until{ctx, file}, 1<<20)
	if _, err := s.WriteTo(w); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := file.Chmod(0o644); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(path))
}

// until is a writer until its context ends.
type until struct {
	ctx context.Context
	w   io.Writer
}

func (u until) Write(b []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.w.Write(b)
}

// outsourced are the tensors in another file.
type outsourced struct {
	location string
	data     segments
}

func (m *Model) segments(o *outsourced) segments {
	var s segments
	head := appendInt(nil, 1, m.IRVersion)
	for _, opset := range m.Opsets {
		b := appendInt(appendText(nil, 1, opset.Domain), 2, opset.Version)
		head = appendBytes(head, 8, b)
	}
	s.add(append(head, m.other...))
	s.message(7, m.Graph.segments(o))
	return s
}

func (g *Graph) segments(o *outsourced) segments {
	var s segments
	var b []byte
	for _, n := range g.Nodes {
		b = appendBytes(b, 1, n.encode())
	}
	s.add(b)
	for _, t := range g.Initializers {
		s.message(5, t.segments(o))
	}
	b = nil
	for _, list := range []struct {
		num   protowire.Number
		infos []*ValueInfo
	}{{11, g.Inputs}, {12, g.Outputs}, {13, g.ValueInfos}} {
		for _, v := range list.infos {
			b = appendBytes(b, list.num, v.raw)
		}
	}
	s.add(append(b, g.other...))
	return s
}

func (t *Tensor) segments(o *outsourced) segments {
	var s segments
	var b []byte
	for _, dim := range t.Dims {
		b = appendInt(b, 1, dim)
	}
	b = appendInt(b, 2, int64(t.Type))
	b = appendText(b, 8, t.Name)
	b = append(b, t.other...)
	switch {
	case t.Values == nil:
		s.add(b)
	case o != nil && t.Values.Size() >= minExternal:
		if rest := o.data.size % alignment; rest > 0 {
			o.data.add(make([]byte, alignment-rest))
		}
		for _, entry := range [][2]string{
			{"location", o.location}, {"offset", strconv.FormatInt(o.data.size, 10)}, {"length", strconv.FormatInt(t.Values.Size(), 10)},
		} {
			b = appendBytes(b, 13, appendText(appendText(nil, 1, entry[0]), 2, entry[1]))
		}
		s.add(appendInt(b, 14, 1))
		o.data.values(t.Values)
	default:
		b = protowire.AppendTag(b, 9, protowire.BytesType)
		s.add(protowire.AppendVarint(b, uint64(t.Values.Size())))
		s.values(t.Values)
	}
	return s
}

func (n *Node) encode() []byte {
	var b []byte
	for _, name := range n.Inputs {
		b = appendText(b, 1, name)
	}
	for _, name := range n.Outputs {
		b = appendText(b, 2, name)
	}
	if n.Name != "" {
		b = appendText(b, 3, n.Name)
	}
	b = appendText(b, 4, n.Op)
	for _, a := range n.Attributes {
		b = appendBytes(b, 5, a.raw)
	}
	if n.Domain != "" {
		b = appendText(b, 7, n.Domain)
	}
	return append(b, n.other...)
}

// NewValue makes the description of a dense tensor. A dimension below zero is not known.
func NewValue(name string, kind DataType, dims ...int64) *ValueInfo {
	var shape []byte
	for _, dim := range dims {
		var b []byte
		if dim >= 0 {
			b = appendInt(nil, 1, dim)
		}
		shape = appendBytes(shape, 1, b)
	}
	tensor := appendBytes(appendInt(nil, 1, int64(kind)), 2, shape)
	return &ValueInfo{Name: name, Type: kind, raw: appendBytes(appendText(nil, 1, name), 2, appendBytes(nil, 1, tensor))}
}

// AttributeProto.AttributeType, the field 20 of an attribute.
const (
	typeFloat = 1
	typeInt   = 2
	typeInts  = 7
)

// IntAttribute makes an attribute that is a number.
func IntAttribute(name string, value int64) Attribute {
	b := appendInt(appendInt(appendText(nil, 1, name), 3, value), 20, typeInt)
	return Attribute{Name: name, Int: value, raw: b}
}

// FloatAttribute makes an attribute that is a floating-point number.
func FloatAttribute(name string, value float32) Attribute {
	b := protowire.AppendTag(appendText(nil, 1, name), 2, protowire.Fixed32Type)
	b = appendInt(protowire.AppendFixed32(b, math.Float32bits(value)), 20, typeFloat)
	return Attribute{Name: name, Float: value, raw: b}
}

// IntsAttribute makes an attribute that is a list of numbers.
func IntsAttribute(name string, values ...int64) Attribute {
	b := appendText(nil, 1, name)
	for _, value := range values {
		b = appendInt(b, 8, value)
	}
	return Attribute{Name: name, Ints: values, raw: appendInt(b, 20, typeInts)}
}

func appendInt(b []byte, num protowire.Number, value int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, num, protowire.VarintType), uint64(value))
}

func appendText(b []byte, num protowire.Number, text string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, num, protowire.BytesType), text)
}

func appendBytes(b []byte, num protowire.Number, data []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), data)
}
