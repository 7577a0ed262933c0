// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"encoding/binary"
	"math"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// Field numbers of TensorFlow's messages TensorProto, TensorShapeProto and its
// Dim.
const (
	tensorKind    protowire.Number = 1
	tensorShape   protowire.Number = 2
	tensorContent protowire.Number = 4
	tensorFloats  protowire.Number = 5
	tensorDoubles protowire.Number = 6
	tensorInts    protowire.Number = 7
	tensorInt64s  protowire.Number = 10
	tensorHalves  protowire.Number = 13
	tensorUint32s protowire.Number = 16
	tensorUint64s protowire.Number = 17

	shapeDim     protowire.Number = 2
	shapeUnknown protowire.Number = 3
	dimSize      protowire.Number = 1
)

// readTensor reads a TensorProto. ok is false where it does not hold one number.
func readTensor(message []byte) (value string, ok bool, err error) {
	kind, single := uint64(0), true
	var content []byte
	listed := map[protowire.Number]field{}
	err = fields(message, func(f field) error {
		switch {
		case f.is(tensorKind, protowire.VarintType):
			kind = f.number
		case f.is(tensorShape, protowire.BytesType):
			one, err := hasOneElement(f.bytes)
			single = one
			return err
		case f.is(tensorContent, protowire.BytesType):
			content = f.bytes
		default:
			listed[f.name] = f
		}
		return nil
	})
	t, known := tensorTypes[kind]
	if err != nil || !known || !single {
		return "", false, err
	}
	if len(content) > 0 {
		if len(content) != t.size {
			return "", false, nil
		}
		var padded [8]byte
		copy(padded[:], content)
		return t.format(binary.LittleEndian.Uint64(padded[:])), true, nil
	}
	list, ok := listed[t.list]
	if !ok {
		return t.format(0), true, nil // zeros may be left out
	}
	bits, ok := list.first()
	return t.format(bits), ok, nil
}

// hasOneElement reports whether a TensorShapeProto is that of one element.
func hasOneElement(shape []byte) (bool, error) {
	one := true
	err := fields(shape, func(f field) error {
		switch {
		case f.is(shapeUnknown, protowire.VarintType):
			one = one && f.number == 0
		case f.is(shapeDim, protowire.BytesType):
			size := uint64(0)
			if err := fields(f.bytes, func(f field) error {
				if f.is(dimSize, protowire.VarintType) {
					size = f.number
				}
				return nil
			}); err != nil {
				return err
			}
			one = one && size == 1
		}
		return nil
	})
	return one, err
}

// tensorType is how tensors of one DataType hold their numbers.
type tensorType struct {
	size   int              // bytes of a number in tensor_content
	list   protowire.Number // the field that lists numbers instead
	format func(bits uint64) string
}

// tensorTypes are the types of numbers, by their number in DataType.
var tensorTypes = map[uint64]tensorType{
	1:  {4, tensorFloats, func(b uint64) string { return formatFloat32(uint32(b)) }},          // DT_FLOAT
	2:  {8, tensorDoubles, formatFloat64},                                                     // DT_DOUBLE
	3:  {4, tensorInts, func(b uint64) string { return formatInt(int64(int32(b))) }},          // DT_INT32
	4:  {1, tensorInts, func(b uint64) string { return formatUint(b & math.MaxUint8) }},       // DT_UINT8
	5:  {2, tensorInts, func(b uint64) string { return formatInt(int64(int16(b))) }},          // DT_INT16
	6:  {1, tensorInts, func(b uint64) string { return formatInt(int64(int8(b))) }},           // DT_INT8
	9:  {8, tensorInt64s, func(b uint64) string { return formatInt(int64(b)) }},               // DT_INT64
	14: {2, tensorHalves, func(b uint64) string { return formatFloat32(uint32(b) << 16) }},    // DT_BFLOAT16
	17: {2, tensorInts, func(b uint64) string { return formatUint(b & math.MaxUint16) }},      // DT_UINT16
	19: {2, tensorHalves, func(b uint64) string { return formatFloat32(widened(uint16(b))) }}, // DT_HALF
	22: {4, tensorUint32s, func(b uint64) string { return formatUint(b & math.MaxUint32) }},   // DT_UINT32
	23: {8, tensorUint64s, formatUint},                                                        // DT_UINT64
}

func formatInt(n int64) string   { return strconv.FormatInt(n, 10) }
func formatUint(n uint64) string { return strconv.FormatUint(n, 10) }

func formatFloat64(bits uint64) string {
	return strconv.FormatFloat(math.Float64frombits(bits), 'g', -1, 64)
}

// formatFloat32 writes a number of 32 bits with the digits that tell it from
// its neighbors.
func formatFloat32(bits uint32) string {
	return strconv.FormatFloat(float64(math.Float32frombits(bits)), 'g', -1, 32)
}

// widened is a number of 16 bits in 32.
func widened(h uint16) uint32 {
	sign, exponent, fraction := uint32(h>>15)<<31, uint32(h>>10)&0x1f, uint32(h)&0x3ff
	switch exponent {
	case 0x1f:
		return sign | 0xff<<23 | fraction<<13
	case 0:
		return sign | math.Float32bits(float32(fraction)/(1<<24))
	}
	return sign | (exponent+127-15)<<23 | fraction<<13
}
