// SPDX-License-Identifier: Apache-2.0

// Package protofield reads protobuf messages without their schema, of files that are too
// large for memory: the heads of fields, so that payloads can be skipped.
package protofield

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// ErrWire says that bytes are no protobuf message.
var ErrWire = errors.New("this is no protobuf message")

// MaxHead is how many bytes a head has at most: a tag and a varint.
const MaxHead = 20

// Head is what comes before a field's payload, or all of a field that has none.
type Head struct {
	Num  protowire.Number
	Type protowire.Type
	// Value is the number, or the length of the payload.
	Value uint64
	// Size is the number of bytes of the head.
	Size int64
}

// Payload is how many bytes follow the head.
func (h Head) Payload() uint64 {
	if h.Type == protowire.BytesType {
		return h.Value
	}
	return 0
}

// ReadHead reads the head at the beginning of data, which are the bytes up to the end of the
// message, or the first MaxHead of them. left is how many there are. Groups, which no format
// of models uses, are refused, and payloads that end after the message.
func ReadHead(data []byte, left int64) (Head, error) {
	num, typ, tag := protowire.ConsumeTag(data)
	if tag < 0 {
		return Head{}, fmt.Errorf("%w: %w", ErrWire, protowire.ParseError(tag))
	}
	h, n := Head{Num: num, Type: typ}, 0
	switch data = data[tag:]; typ {
	case protowire.VarintType, protowire.BytesType:
		h.Value, n = protowire.ConsumeVarint(data)
	case protowire.Fixed32Type:
		var value uint32
		value, n = protowire.ConsumeFixed32(data)
		h.Value = uint64(value)
	case protowire.Fixed64Type:
		h.Value, n = protowire.ConsumeFixed64(data)
	default:
		return Head{}, fmt.Errorf("%w: field %d has the wire type %d", ErrWire, num, typ)
	}
	if n < 0 {
		return Head{}, fmt.Errorf("%w: field %d: %w", ErrWire, num, protowire.ParseError(n))
	}
	h.Size = int64(tag + n)
	if there := left - h.Size; h.Payload() > uint64(there) {
		return Head{}, fmt.Errorf("field %d claims %d bytes, of which %d are there: the file is truncated or damaged", num, h.Value, there)
	}
	return h, nil
}
