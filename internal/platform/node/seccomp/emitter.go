// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"slices"

	"golang.org/x/net/bpf"
)

// farthest is how many instructions a conditional jump can skip.
const farthest = 255

// emitter writes a program from its end to its start, because jumps only go forward:
// what they lead to is there when they are written.
type emitter struct {
	code    []bpf.Instruction // the last one first
	answers map[answer]place  // that were written last
}

// place is the index of an instruction in emitter.code.
type place int

func newEmitter() *emitter { return &emitter{answers: map[answer]place{}} }

// program returns the instructions from the first to the last.
func (e *emitter) program() []bpf.Instruction {
	code := slices.Clone(e.code)
	slices.Reverse(code)
	return code
}

func (e *emitter) write(i bpf.Instruction) place {
	e.code = append(e.code, i)
	return place(len(e.code) - 1)
}

// skip is how many instructions the next one would skip to reach p.
func (e *emitter) skip(p place) int { return len(e.code) - 1 - int(p) }

// answer returns the place of an instruction that ends the program.
func (e *emitter) answer(a answer) place {
	if p, ok := e.answers[a]; ok {
		return p
	}
	p := e.write(bpf.RetConstant{Val: uint32(a)})
	e.answers[a] = p
	return p
}

// near returns a place with the effect of p that the next instruction can reach.
func (e *emitter) near(p place) place {
	if e.skip(p) <= farthest {
		return p
	}
	end, ok := e.code[p].(bpf.RetConstant)
	if !ok {
		return e.write(bpf.Jump{Skip: uint32(e.skip(p))})
	}
	a := answer(end.Val)
	if e.skip(e.answers[a]) > farthest {
		e.answers[a] = e.write(end)
	}
	return e.answers[a]
}

// jump writes a comparison of the accumulator.
func (e *emitter) jump(test bpf.JumpTest, value uint32, yes, no place) place {
	if yes == no {
		return yes
	}
	// One that is brought near pushes the other away, but not itself.
	for e.skip(yes) > farthest || e.skip(no) > farthest {
		yes, no = e.near(yes), e.near(no)
	}
	return e.write(bpf.JumpIf{Cond: test, Val: value, SkipTrue: uint8(e.skip(yes)), SkipFalse: uint8(e.skip(no))})
}

// before writes an instruction that is followed by what is at p.
func (e *emitter) before(i bpf.Instruction, p place) place {
	if skip := e.skip(p); skip > 0 {
		e.write(bpf.Jump{Skip: uint32(skip)})
	}
	return e.write(i)
}

// load writes one that brings 4 bytes of the kernel's description of the syscall into
// the accumulator.
func (e *emitter) load(offset uint32, p place) place {
	return e.before(bpf.LoadAbsolute{Off: offset, Size: 4}, p)
}

// leaf is what a search leads to: an answer, or instructions elsewhere. An answer has no
// fixed place.
type leaf struct {
	answer    answer
	block     place
	elsewhere bool
}

// leaf returns the place of a leaf.
func (e *emitter) leaf(l leaf) place {
	if l.elsewhere {
		return l.block
	}
	return e.answer(l.answer)
}

// span is a range of numbers, up to where the next one starts, all with one result.
type span[T comparable] struct {
	from   uint32
	result T
}

// merge joins neighbours with the same result.
func merge[T comparable](spans []span[T]) []span[T] {
	return slices.CompactFunc(spans, func(a, b span[T]) bool { return a.result == b.result })
}

// search writes a binary search for the span that holds the accumulator. The first
// starts at 0.
func search[T comparable](e *emitter, spans []span[T], at func(T) place) place {
	switch {
	case len(spans) == 1:
		return at(spans[0].result)
	case len(spans) == 3 && spans[0].result == spans[2].result && spans[2].from-spans[1].from == 1:
		rest, one := at(spans[0].result), at(spans[1].result)
		return e.jump(bpf.JumpEqual, spans[1].from, one, rest)
	}
	half := len(spans) / 2
	upper := search(e, spans[half:], at)
	lower := search(e, spans[:half], at)
	return e.jump(bpf.JumpGreaterOrEqual, spans[half].from, upper, lower)
}
