// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"diwan.dev/diwan/internal/models/protofield"
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

func (m *message) next() (field, error) {
	data, err := m.f.peek(m.at, int(min(protofield.MaxHead, m.end-m.at)))
	if err != nil {
		return field{}, err
	}
	head, err := protofield.ReadHead(data, m.end-m.at)
	if err != nil {
		return field{}, err
	}
	m.at += head.Size
	found := field{num: head.Num, typ: head.Type, body: message{f: m.f, depth: m.depth + 1}}
	if head.Type == protowire.BytesType {
		end := m.at + int64(head.Value)
		found.body.at, found.body.end, found.body.startsAt, m.at = m.at, end, m.at, end
	} else {
		found.number = head.Value
	}
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
		return "", fmt.Errorf("%w: field %d is no text", protofield.ErrWire, f.num)
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
			return nil, m.f.fail(m.at, fmt.Errorf("%w: %w", protofield.ErrWire, protowire.ParseError(n)))
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
			return fmt.Errorf("%w: field %d is no number", protofield.ErrWire, f.num)
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
