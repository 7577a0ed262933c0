// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"encoding/binary"

	"google.golang.org/protobuf/encoding/protowire"
)

// field is one field of a protocol buffer message.
type field struct {
	name   protowire.Number
	kind   protowire.Type
	number uint64 // of a varint and the fixed kinds
	bytes  []byte // of the kind bytes
}

func (f field) is(name protowire.Number, kind protowire.Type) bool {
	return f.name == name && f.kind == kind
}

// first is the number of a tensor's list of one, packed or not.
func (f field) first() (uint64, bool) {
	if f.kind != protowire.BytesType {
		return f.number, f.name != 0
	}
	switch f.name {
	case tensorFloats:
		if len(f.bytes) == 4 {
			return uint64(binary.LittleEndian.Uint32(f.bytes)), true
		}
	case tensorDoubles:
		if len(f.bytes) == 8 {
			return binary.LittleEndian.Uint64(f.bytes), true
		}
	default:
		number, n := protowire.ConsumeVarint(f.bytes)
		return number, n > 0 && n == len(f.bytes)
	}
	return 0, false
}

// fields calls each with every field of a message.
func fields(message []byte, each func(field) error) error {
	for len(message) > 0 {
		name, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return errEvent
		}
		message = message[n:]
		f := field{name: name, kind: kind}
		switch kind {
		case protowire.VarintType:
			f.number, n = protowire.ConsumeVarint(message)
		case protowire.Fixed32Type:
			var number uint32
			number, n = protowire.ConsumeFixed32(message)
			f.number = uint64(number)
		case protowire.Fixed64Type:
			f.number, n = protowire.ConsumeFixed64(message)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(message)
		default:
			n = protowire.ConsumeFieldValue(name, kind, message)
		}
		if n < 0 {
			return errEvent
		}
		message = message[n:]
		if err := each(f); err != nil {
			return err
		}
	}
	return nil
}
