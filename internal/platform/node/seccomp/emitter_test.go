// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"testing"

	"golang.org/x/net/bpf"
)

// TestJumpAtTheLimit writes jumps whose targets are as far away as one can skip, and
// farther: bringing one target near pushes the other away.
func TestJumpAtTheLimit(t *testing.T) {
	t.Parallel()
	for between := farthest - 3; between < farthest+4; between++ {
		for further := range 4 {
			e := newEmitter()
			no := e.load(8, e.answer(trap)) // not an answer itself, which would be copied
			for range further {
				e.write(bpf.TAX{})
			}
			yes := e.load(8, e.answer(allow))
			for range between {
				e.write(bpf.TAX{})
			}
			e.before(bpf.LoadAbsolute{Off: numberOffset, Size: 4}, e.jump(bpf.JumpEqual, 1, yes, no))
			raw, err := bpf.Assemble(e.program())
			if err != nil {
				t.Fatal(err)
			}
			v := newVirtual(t, &Program{instructions: raw})
			for number, want := range map[uint32]answer{1: allow, 2: trap} {
				if got := v.run(t, data{number: number}); got != want {
					t.Errorf("%d and %d instructions between: %d gets %#x, want %#x", between, further, number, got, want)
				}
			}
		}
	}
}
