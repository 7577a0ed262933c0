// SPDX-License-Identifier: Apache-2.0

package compress

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"diwan.dev/diwan/internal/models/onnx"
)

// prune zeroes the part of each weight's values that is smallest by magnitude.
func (r *rewrite) prune(sparsity float64) error {
	if !(sparsity > 0 && sparsity < 1) {
		return fmt.Errorf("cannot prune by a sparsity of %v: must be above 0 and below 1", sparsity)
	}
	for _, t := range r.constants() {
		if _, ok := r.matrix(t); !ok {
			continue
		}
		c, err := cutOf(t, sparsity)
		if errors.Is(err, errNotFinite) {
			r.reasons[t.Name] = err.Error()
			continue
		} else if err != nil {
			return err
		}
		t.Values = mapped{t.Values, t.Values.Size(), c.apply}
		r.report.Zeros += c.zeros
		r.compressed(t)
	}
	return nil
}

// cut says which values become zero: those whose magnitude is less than that with the bits
// below, and the first equal ones of those that have it.
type cut struct {
	below uint32
	equal int64
	zeros int64 // all, with those that were zero
}

// cutOf finds the cut by two histograms, of the upper and of the lower half of the magnitudes' bits, which
// are in the order of the magnitudes.
func cutOf(t *onnx.Tensor, sparsity float64) (cut, error) {
	wanted := int64(math.Round(sparsity * float64(t.Elements())))
	upper, lower := make([]int64, 1<<16), make([]int64, 1<<16)
	err := floats(t.Values, func(_ int64, piece []float32) error {
		for _, value := range piece {
			if !finite(value) {
				return errNotFinite
			}
			upper[magnitude(value)>>16]++
		}
		return nil
	})
	if err != nil {
		return cut{}, err
	}
	zeros := int64(0)
	left := wanted
	bin := uint32(0)
	for ; left >= upper[bin] && bin < 0xffff; bin++ {
		left -= upper[bin]
	}
	err = floats(t.Values, func(_ int64, piece []float32) error {
		for _, value := range piece {
			bits := magnitude(value)
			if bits == 0 {
				zeros++
			}
			if bits>>16 == bin {
				lower[bits&0xffff]++
			}
		}
		return nil
	})
	if err != nil {
		return cut{}, err
	}
	low := uint32(0)
	for ; left >= lower[low] && low < 0xffff; low++ {
		left -= lower[low]
	}
	return cut{bin<<16 | low, left, max(zeros, wanted)}, nil
}

func magnitude(value float32) uint32 { return math.Float32bits(value) &^ (1 << 31) }

// apply makes the function that zeroes values of one writing.
func (c cut) apply() func(out []byte, at int64, piece []float32) []byte {
	equal := c.equal
	return func(out []byte, _ int64, piece []float32) []byte {
		for _, value := range piece {
			bits := magnitude(value)
			switch {
			case bits < c.below:
				value = 0
			case bits == c.below && equal > 0:
				equal--
				value = 0
			}
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(value))
		}
		return out
	}
}
