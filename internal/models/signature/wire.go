// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// message is a protobuf message in a file, read field by field without its schema.
// Payloads are skipped until they are asked for, so that weights cost nothing.
type message struct {
	f        *file
	at, end  int64
	depth    int
	startsAt int64
}

// field is a field of a message. One with a length has its payload in body, any other
// its value in number.
type field struct {
	num    protowire.Number
	typ    protowire.Type
	number uint64
	body   message
}

// message is the message that is n bytes at an offset.
func (f *file) message(offset, n int64) message {
	return message{f: f, at: offset, end: offset + n, startsAt: offset}
}

// size is the number of bytes of the whole message.
func (m message) size() int64 { return m.end - m.startsAt }

// each calls visit for every field. Groups, which none of the formats uses, are refused.
func (m message) each(visit func(field) error) error {
	if err := m.f.r.nest(m.depth); err != nil {
		return m.f.fail(m.startsAt, err)
	}
	for m.at < m.end {
		start := m.at
		if err := m.f.r.visit(); err != nil {
			return m.f.fail(start, err)
		}
		f, err := m.next()
		if err != nil {
			return m.f.fail(start, err)
		}
		if err := visit(f); err != nil {
			return m.f.fail(start, err)
		}
	}
	return nil
}

var errWire = errors.New("this is no protobuf message")

func (m *message) next() (field, error) {
	// A tag and a varint have at most 10 bytes each.
	data, err := m.f.peek(m.at, int(min(20, m.end-m.at)))
	if err != nil {
		return field{}, err
	}
	num, typ, n := protowire.ConsumeTag(data)
	if n < 0 {
		return field{}, fmt.Errorf("%w: %w", errWire, protowire.ParseError(n))
	}
	data, m.at = data[n:], m.at+int64(n)
	found := field{num: num, typ: typ, body: message{f: m.f, depth: m.depth + 1}}
	switch typ {
	case protowire.VarintType:
		found.number, n = protowire.ConsumeVarint(data)
	case protowire.Fixed32Type:
		var value uint32
		value, n = protowire.ConsumeFixed32(data)
		found.number = uint64(value)
	case protowire.Fixed64Type:
		found.number, n = protowire.ConsumeFixed64(data)
	case protowire.BytesType:
		var length uint64
		if length, n = protowire.ConsumeVarint(data); n >= 0 {
			at := m.at + int64(n)
			if length > uint64(m.end-at) {
				return field{}, fmt.Errorf("field %d claims %d bytes, of which %d are there: the file is truncated or damaged", num, length, m.end-at)
			}
			found.body = message{f: m.f, at: at, end: at + int64(length), depth: m.depth + 1, startsAt: at}
			m.at = at + int64(length)
			return found, nil
		}
	default:
		return field{}, fmt.Errorf("%w: field %d has the wire type %d", errWire, num, typ)
	}
	if n < 0 {
		return field{}, fmt.Errorf("%w: field %d: %w", errWire, num, protowire.ParseError(n))
	}
	m.at += int64(n)
	return found, nil
}

// width is the number of bytes of a payload, or of a fixed number.
func (f field) width() int64 {
	switch f.typ {
	case protowire.Fixed32Type:
		return 4
	case protowire.Fixed64Type:
		return 8
	}
	return f.body.size()
}

// text is the payload as a string.
func (f field) text() (string, error) {
	if f.typ != protowire.BytesType {
		return "", fmt.Errorf("%w: field %d is no text", errWire, f.num)
	}
	return f.body.f.text(f.body.at, f.body.size(), fmt.Sprintf("the text of field %d", f.num))
}

// integers appends the values of a repeated integer, packed or not.
func (f field) integers(to []int64) ([]int64, error) {
	if f.typ != protowire.BytesType {
		return append(to, int64(f.number)), f.body.f.r.hold(24)
	}
	for m := f.body; m.at < m.end; {
		data, err := m.f.peek(m.at, int(min(10, m.end-m.at)))
		if err != nil {
			return nil, err
		}
		value, n := protowire.ConsumeVarint(data)
		if n < 0 {
			return nil, m.f.fail(m.at, fmt.Errorf("%w: %w", errWire, protowire.ParseError(n)))
		}
		if err := m.f.r.hold(24); err != nil {
			return nil, m.f.fail(m.at, err)
		}
		to = append(to, int64(value))
		m.at += int64(n)
	}
	return to, nil
}

// fields is each with a visitor per field number; other fields are skipped.
func (m message) fields(visitors map[protowire.Number]func(field) error) error {
	return m.each(func(f field) error {
		if visit := visitors[f.num]; visit != nil {
			return visit(f)
		}
		return nil
	})
}

// into is a visitor that keeps a text.
func into(text *string) func(field) error {
	return func(f field) (err error) {
		*text, err = f.text()
		return err
	}
}

// intoInt is a visitor that keeps a number.
func intoInt(value *int64) func(field) error {
	return func(f field) error {
		if f.typ == protowire.BytesType {
			return fmt.Errorf("%w: field %d is no number", errWire, f.num)
		}
		*value = int64(f.number)
		return nil
	}
}

// stringMap reads an entry of a map or of a list of key-value pairs with the fields 1
// and 2.
func stringMap(to map[string]string) func(field) error {
	return func(f field) error {
		var key, value string
		err := f.body.fields(map[protowire.Number]func(field) error{1: into(&key), 2: into(&value)})
		if err != nil {
			return err
		}
		to[key] = value
		return f.body.f.r.hold(64)
	}
}
