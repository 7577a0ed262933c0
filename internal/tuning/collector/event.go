// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"errors"
	"math"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// scalar is one number in a TensorFlow event.
type scalar struct {
	tag   []byte
	value string
}

var errEvent = errors.New("the record is not a TensorFlow event")

// Field numbers of TensorFlow's messages Event, Summary and Summary.Value.
const (
	eventWallTime protowire.Number = 1
	eventSummary  protowire.Number = 5

	summaryValue protowire.Number = 1

	valueTag    protowire.Number = 1
	valueSimple protowire.Number = 2
	valueTensor protowire.Number = 8
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

// wallTime is a time in seconds since 1970, the zero time where it is none.
func wallTime(seconds float64) time.Time {
	if !(math.Abs(seconds) <= 1e12) {
		return time.Time{}
	}
	whole, fraction := math.Modf(seconds)
	// A float64 holds today's seconds to about a tenth of a microsecond.
	return storable(time.Unix(int64(whole), int64(math.Round(fraction*1e6))*1000).UTC(), time.Time{})
}
