// SPDX-License-Identifier: Apache-2.0

package compress

import (
	"encoding/binary"
	"io"
	"math"

	"diwan.dev/diwan/internal/models/onnx"
)

// floats calls visit with the float32 values of a tensor in pieces, at counting them.
func floats(v onnx.Values, visit func(at int64, piece []float32) error) error {
	_, err := v.WriteTo(&pieces{visit: visit})
	return err
}

// pieces makes numbers of the bytes that are written to it.
type pieces struct {
	visit func(at int64, piece []float32) error
	at    int64
	rest  []byte // less than a number
	piece []float32
}

func (p *pieces) Write(b []byte) (int, error) {
	n := len(b)
	p.piece = p.piece[:0]
	for len(b) > 0 {
		if len(p.rest) > 0 || len(b) < 4 {
			take := min(4-len(p.rest), len(b))
			p.rest, b = append(p.rest, b[:take]...), b[take:]
			if len(p.rest) == 4 {
				p.piece = append(p.piece, math.Float32frombits(binary.LittleEndian.Uint32(p.rest)))
				p.rest = p.rest[:0]
			}
			continue
		}
		p.piece = append(p.piece, math.Float32frombits(binary.LittleEndian.Uint32(b)))
		b = b[4:]
	}
	if len(p.piece) > 0 {
		if err := p.visit(p.at, p.piece); err != nil {
			return 0, err
		}
		p.at += int64(len(p.piece))
	}
	return n, nil
}

// mapped are values that are computed of others when they are written. start makes the function of one
// writing, which appends to out what becomes of a piece.
type mapped struct {
	from  onnx.Values
	size  int64
	start func() func(out []byte, at int64, piece []float32) []byte
}

// each makes values of others by a function without a state.
func each(from onnx.Values, size int64, f func(out []byte, at int64, piece []float32) []byte) mapped {
	return mapped{from, size, func() func([]byte, int64, []float32) []byte { return f }}
}

func (m mapped) Size() int64 { return m.size }

func (m mapped) WriteTo(w io.Writer) (int64, error) {
	var written int64
	var out []byte
	f := m.start()
	err := floats(m.from, func(at int64, piece []float32) error {
		out = f(out[:0], at, piece)
		n, err := w.Write(out)
		written += int64(n)
		return err
	})
	return written, err
}

// transposed are a matrix of bytes with its rows as columns.
type transposed struct {
	from          onnx.Values
	rows, columns int64 // of from
}

func (t transposed) Size() int64 { return t.from.Size() }

func (t transposed) WriteTo(w io.Writer) (int64, error) {
	all := make([]byte, t.rows*t.columns)
	at := int64(0)
	_, err := t.from.WriteTo(writerFunc(func(b []byte) (int, error) {
		for _, value := range b {
			all[at%t.columns*t.rows+at/t.columns] = value
			at++
		}
		return len(b), nil
	}))
	if err != nil {
		return 0, err
	}
	n, err := w.Write(all)
	return int64(n), err
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// float32s are values in memory.
func float32s(values ...float32) onnx.Bytes {
	var b onnx.Bytes
	for _, value := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(value))
	}
	return b
}

// int64s are values in memory.
func int64s(values ...int64) onnx.Bytes {
	var b onnx.Bytes
	for _, value := range values {
		b = binary.LittleEndian.AppendUint64(b, uint64(value))
	}
	return b
}
