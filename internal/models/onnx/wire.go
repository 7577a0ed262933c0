// SPDX-License-Identifier: Apache-2.0

package onnx

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"diwan.dev/diwan/internal/models/protofield"
)

const (
	// maxMemory bounds what a model takes without its weights, in bytes of names and
	// nodes. The structures take a small multiple of it.
	maxMemory = 256 << 20
	// maxDepth bounds how deep graphs are nested.
	maxDepth = 64
	// maxRank bounds the dimensions of a tensor.
	maxRank = 1000
)

// section is a part of a file, or of memory.
type section struct {
	r     io.ReaderAt
	at, n int64
}

func inMemory(b []byte) section { return section{bytes.NewReader(b), 0, int64(len(b))} }

// Size is the number of bytes.
func (s section) Size() int64 { return s.n }

// WriteTo writes the bytes of the section.
func (s section) WriteTo(w io.Writer) (int64, error) {
	n, err := io.Copy(w, io.NewSectionReader(s.r, s.at, s.n))
	if err == nil && n != s.n {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// field is a field of a message: a number, or a payload. start is where it begins in the message.
type field struct {
	num     protowire.Number
	typ     protowire.Type
	number  uint64
	payload section
	whole   section
}

// reader reads messages at the cost of a budget.
type reader struct {
	ctx    context.Context
	memory int64
	count  int
}

// hold pays for bytes that are kept.
func (r *reader) hold(n int64) error {
	if r.memory -= n; n < 0 || r.memory < 0 {
		return fmt.Errorf("it has more than %d MiB of nodes, names and attributes: store its weights as initializers", maxMemory>>20)
	}
	return nil
}

// each calls visit for every field of a message.
func (r *reader) each(s section, visit func(field) error) error {
	var buffer [protofield.MaxHead]byte
	for at, end := s.at, s.at+s.n; at < end; {
		if r.count++; r.count%4096 == 0 {
			if err := r.ctx.Err(); err != nil {
				return err
			}
		}
		data := buffer[:min(protofield.MaxHead, end-at)]
		if n, err := s.r.ReadAt(data, at); n < len(data) {
			return fmt.Errorf("read at byte %d: %w", at, err)
		}
		head, err := protofield.ReadHead(data, end-at)
		if err != nil {
			return fmt.Errorf("at byte %d: %w", at, err)
		}
		f := field{num: head.Num, typ: head.Type, number: head.Value}
		next := at + head.Size
		if f.typ == protowire.BytesType {
			f.payload = section{s.r, next, int64(head.Value)}
			next += int64(head.Value)
		}
		f.whole = section{s.r, at, next - at}
		at = next
		if err := visit(f); err != nil {
			return err
		}
	}
	return nil
}

// bytes reads a section into memory.
func (r *reader) bytes(s section) ([]byte, error) {
	if err := r.hold(s.n); err != nil {
		return nil, err
	}
	b := make([]byte, s.n)
	if n, err := s.r.ReadAt(b, s.at); n < len(b) {
		return nil, fmt.Errorf("read %d bytes at %d: %w", s.n, s.at, err)
	}
	return b, nil
}

// keep appends a field to those that are passed through.
func (r *reader) keep(to *[]byte, f field) error {
	b, err := r.bytes(f.whole)
	*to = append(*to, b...)
	return err
}

func (r *reader) text(to *string, f field) error {
	if f.typ != protowire.BytesType {
		return fmt.Errorf("%w: field %d is no text", protofield.ErrWire, f.num)
	}
	b, err := r.bytes(f.payload)
	*to = string(b)
	return err
}

func (r *reader) integer(to *int64, f field) error {
	if f.typ != protowire.VarintType {
		return fmt.Errorf("%w: field %d is no number", protofield.ErrWire, f.num)
	}
	*to = int64(f.number)
	return nil
}

func (r *reader) float(to *float32, f field) error {
	if f.typ != protowire.Fixed32Type {
		return fmt.Errorf("%w: field %d is no float", protofield.ErrWire, f.num)
	}
	*to = math.Float32frombits(uint32(f.number))
	return nil
}

// message checks that a field is one.
func message(f field) (section, error) {
	if f.typ != protowire.BytesType {
		return section{}, fmt.Errorf("%w: field %d is no message", protofield.ErrWire, f.num)
	}
	return f.payload, nil
}

// integers appends a repeated integer, packed or not.
func (r *reader) integers(to *[]int64, f field) error {
	switch f.typ {
	case protowire.VarintType:
		*to = append(*to, int64(f.number))
		return r.hold(8)
	case protowire.BytesType:
	default:
		return fmt.Errorf("%w: field %d is no number", protofield.ErrWire, f.num)
	}
	data, err := r.bytes(f.payload)
	if err != nil {
		return err
	}
	for len(data) > 0 {
		value, n := protowire.ConsumeVarint(data)
		if n < 0 {
			return fmt.Errorf("%w: field %d: %w", protofield.ErrWire, f.num, protowire.ParseError(n))
		}
		if err := r.hold(8); err != nil {
			return err
		}
		*to, data = append(*to, int64(value)), data[n:]
	}
	return nil
}
