// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"maps"
	"math"
	"slices"

	"golang.org/x/net/bpf"
)

// Where the kernel's description of a syscall, struct seccomp_data, has what.
const (
	numberOffset = 0
	auditOffset  = 4
	argsOffset   = 16
)

// low and high are the offsets of the halves of an argument; the architectures here are
// little-endian.
func low(index uint) uint32  { return argsOffset + 8*uint32(index) }
func high(index uint) uint32 { return low(index) + 4 }

// split returns the halves of a value.
func split(v uint64) (high, low uint32) { return uint32(v >> 32), uint32(v) }

// decision writes what evaluates a decision. The upper half of an argument of a narrow
// architecture counts as 0, whatever a program left there: the kernel ignores it too.
func (e *emitter) decision(d decision, narrow bool) place {
	if index, ok := d.single(); ok {
		return e.byValue(d, index, narrow)
	}
	next := e.answer(d.otherwise)
	for _, b := range slices.Backward(d.branches) {
		yes := e.answer(b.answer)
		for _, c := range slices.Backward(b.all) {
			yes = e.condition(c, narrow, yes, next)
		}
		next = yes
	}
	return next
}

// condition writes a comparison of an argument.
func (e *emitter) condition(c condition, narrow bool, yes, no place) place {
	switch c.op {
	case equal:
		return e.masked(c.index, math.MaxUint64, c.value, narrow, yes, no)
	case notEqual:
		return e.masked(c.index, math.MaxUint64, c.value, narrow, no, yes)
	case maskedEqual:
		return e.masked(c.index, c.mask, c.value, narrow, yes, no)
	case greater:
		return e.ordered(bpf.JumpGreaterThan, c, narrow, yes, no)
	case greaterOrEqual:
		return e.ordered(bpf.JumpGreaterOrEqual, c, narrow, yes, no)
	case less:
		return e.ordered(bpf.JumpGreaterOrEqual, c, narrow, no, yes)
	default: // lessOrEqual
		return e.ordered(bpf.JumpGreaterThan, c, narrow, no, yes)
	}
}

// masked writes argument & mask == value.
func (e *emitter) masked(index uint, mask, value uint64, narrow bool, yes, no place) place {
	maskHigh, maskLow := split(mask)
	valueHigh, valueLow := split(value)
	if narrow && valueHigh != 0 {
		return no
	}
	p := e.half(low(index), maskLow, valueLow, yes, no)
	if !narrow {
		p = e.half(high(index), maskHigh, valueHigh, p, no)
	}
	return p
}

// half writes the same for the half of an argument at an offset.
func (e *emitter) half(offset, mask, value uint32, yes, no place) place {
	if mask == 0 {
		return yes
	}
	p := e.jump(bpf.JumpEqual, value, yes, no)
	if mask != math.MaxUint32 {
		p = e.before(bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: mask}, p)
	}
	return e.load(offset, p)
}

// ordered writes argument > value or argument >= value, as test says.
func (e *emitter) ordered(test bpf.JumpTest, c condition, narrow bool, yes, no place) place {
	valueHigh, valueLow := split(c.value)
	if narrow && valueHigh != 0 {
		return no
	}
	p := e.load(low(c.index), e.jump(test, valueLow, yes, no))
	if narrow {
		return p
	}
	p = e.jump(bpf.JumpEqual, valueHigh, p, no)
	p = e.jump(bpf.JumpGreaterThan, valueHigh, yes, p)
	return e.load(high(c.index), p)
}

// single returns the argument on whose order alone a decision depends, if there is one:
// a search is then shorter than comparisons in turn.
func (d decision) single() (index uint, ok bool) {
	for i, b := range d.branches {
		if len(b.all) != 1 || b.all[0].op == maskedEqual || i > 0 && b.all[0].index != index {
			return 0, false
		}
		index = b.all[0].index
	}
	return index, len(d.branches) > 0
}

// byValue writes a search for the answer by the value of one argument.
func (e *emitter) byValue(d decision, index uint, narrow bool) place {
	edges := map[uint64]bool{0: true} // where the answer may change
	for _, b := range d.branches {
		v := b.all[0].value
		edges[v], edges[v+1] = true, true // after the last value comes 0, which is one anyway
	}
	byHigh := map[uint32][]span[answer]{} // the spans of the lower half, by the upper one
	for _, edge := range slices.Sorted(maps.Keys(edges)) {
		h, l := split(edge)
		byHigh[h] = append(byHigh[h], span[answer]{l, d.evaluate(edge)})
	}
	lowerHalf := func(spans []span[answer]) leaf {
		if spans = merge(spans); len(spans) == 1 {
			return leaf{answer: spans[0].result}
		}
		return leaf{block: e.load(low(index), search(e, spans, e.answer)), elsewhere: true}
	}
	if narrow {
		return e.leaf(lowerHalf(byHigh[0]))
	}
	var upper []span[leaf]
	for _, h := range slices.Sorted(maps.Keys(byHigh)) {
		spans := byHigh[h]
		if spans[0].from != 0 { // there the answer is that of the value before
			spans = slices.Insert(spans, 0, span[answer]{0, d.evaluate(uint64(h) << 32)})
		}
		upper = append(upper, span[leaf]{h, lowerHalf(spans)})
		if _, ok := byHigh[h+1]; !ok && h != math.MaxUint32 {
			upper = append(upper, span[leaf]{h + 1, leaf{answer: d.evaluate((uint64(h) + 1) << 32)}})
		}
	}
	if upper = merge(upper); len(upper) == 1 {
		return e.leaf(upper[0].result)
	}
	return e.load(high(index), search(e, upper, e.leaf))
}

// evaluate returns the answer for a value of the only argument that counts.
func (d decision) evaluate(value uint64) answer {
	for _, b := range d.branches {
		if b.all[0].holds(value) {
			return b.answer
		}
	}
	return d.otherwise
}
