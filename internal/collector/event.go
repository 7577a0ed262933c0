// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"encoding/binary"
	"errors"
	"math"
	"strconv"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// scalar is one number in a TensorFlow event.
type scalar struct {
	tag   []byte
	value string
}

var errEvent = errors.New("the record is no TensorFlow event")

// Field numbers of TensorFlow's messages: Event, Summary, Summary.Value,
// TensorProto, TensorShapeProto and its Dim.
const (
	eventWallTime protowire.Number = 1
	eventSummary  protowire.Number = 5

	summaryValue protowire.Number = 1

	valueTag    protowire.Number = 1
	valueSimple protowire.Number = 2
	valueTensor protowire.Number = 8

	tensorKind    protowire.Number = 1
	tensorShape   protowire.Number = 2
	tensorContent protowire.Number = 4

	shapeDim     protowire.Number = 2
	shapeUnknown protowire.Number = 3
	dimSize      protowire.Number = 1
)

// readEvent returns the numbers in a TensorFlow event, and when it was written,
// the zero time where it does not say. Numbers are values of a summary: simple
// ones, as TensorFlow 1 and PyTorch write them, and tensors of one number, as
// TensorFlow 2 writes them.
func readEvent(record []byte) (at time.Time, scalars []scalar, err error) {
	err = fields(record, func(f field) error {
		switch {
		case f.is(eventWallTime, protowire.Fixed64Type):
			at = wallTime(math.Float64frombits(f.number))
		case f.is(eventSummary, protowire.BytesType):
			return fields(f.bytes, func(f field) error {
				if !f.is(summaryValue, protowire.BytesType) {
					return nil
				}
				s, ok, err := readValue(f.bytes)
				if ok {
					scalars = append(scalars, s)
				}
				return err
			})
		}
		return nil
	})
	return at, scalars, err
}

// readValue reads a Summary.Value. ok is false where it is no number.
func readValue(message []byte) (s scalar, ok bool, err error) {
	err = fields(message, func(f field) error {
		switch {
		case f.is(valueTag, protowire.BytesType):
			s.tag = f.bytes
		case f.is(valueSimple, protowire.Fixed32Type):
			s.value, ok = formatFloat32(uint32(f.number)), true
		case f.is(valueTensor, protowire.BytesType):
			var err error
			s.value, ok, err = readTensor(f.bytes)
			return err
		}
		return nil
	})
	return s, ok && len(s.tag) > 0, err
}

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

// wallTime is a time in seconds since 1970, the zero time where it is none.
func wallTime(seconds float64) time.Time {
	if !(math.Abs(seconds) <= 1e12) {
		return time.Time{}
	}
	whole, fraction := math.Modf(seconds)
	// A float64 holds today's seconds to about a tenth of a microsecond.
	return storable(time.Unix(int64(whole), int64(math.Round(fraction*1e6))*1000).UTC(), time.Time{})
}

// tensorType is how tensors of one DataType hold their numbers.
type tensorType struct {
	size   int              // bytes of a number in tensor_content
	list   protowire.Number // the field that lists numbers instead
	format func(bits uint64) string
}

// tensorTypes are the types of numbers, by their number in DataType.
var tensorTypes = map[uint64]tensorType{
	1:  {4, 5, func(b uint64) string { return formatFloat32(uint32(b)) }},
	2:  {8, 6, func(b uint64) string { return strconv.FormatFloat(math.Float64frombits(b), 'g', -1, 64) }},
	3:  {4, 7, func(b uint64) string { return strconv.FormatInt(int64(int32(b)), 10) }},
	4:  {1, 7, func(b uint64) string { return strconv.FormatUint(b&0xff, 10) }},
	5:  {2, 7, func(b uint64) string { return strconv.FormatInt(int64(int16(b)), 10) }},
	6:  {1, 7, func(b uint64) string { return strconv.FormatInt(int64(int8(b)), 10) }},
	9:  {8, 10, func(b uint64) string { return strconv.FormatInt(int64(b), 10) }},
	14: {2, 13, func(b uint64) string { return formatFloat32(uint32(b) << 16) }},
	17: {2, 7, func(b uint64) string { return strconv.FormatUint(b&0xffff, 10) }},
	19: {2, 13, func(b uint64) string { return formatFloat32(float32OfHalf(uint16(b))) }},
	22: {4, 16, func(b uint64) string { return strconv.FormatUint(b&math.MaxUint32, 10) }},
	23: {8, 17, func(b uint64) string { return strconv.FormatUint(b, 10) }},
}

// formatFloat32 writes a number of 32 bits with the digits that tell it from
// its neighbours.
func formatFloat32(bits uint32) string {
	return strconv.FormatFloat(float64(math.Float32frombits(bits)), 'g', -1, 32)
}

// float32OfHalf widens a number of 16 bits.
func float32OfHalf(h uint16) uint32 {
	sign, exponent, fraction := uint32(h>>15)<<31, uint32(h>>10)&0x1f, uint32(h)&0x3ff
	switch exponent {
	case 0x1f:
		return sign | 0xff<<23 | fraction<<13
	case 0:
		return sign | math.Float32bits(float32(fraction)/(1<<24))
	}
	return sign | (exponent+127-15)<<23 | fraction<<13
}
