// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"errors"
	"maps"
	"testing"

	"pgregory.net/rapid"

	"diwan.dev/diwan/observation"
)

// TestDecide checks any group of appends, of any sources, against what each
// should do by itself, and once more as after a COMMIT without an answer.
func TestDecide(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		held := map[sourceKey]heldSource{}
		for i, name := range []string{"a", "b", "c"} {
			held[sourceKey{source: name}] = heldSource{id: int64(i + 1), stored: rapid.Int64Range(0, 3).Draw(rt, name)}
		}
		appends := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) change {
			b := observation.Batch{Source: rapid.SampledFrom([]string{"a", "b", "c", "unknown"}).Draw(rt, "source")}
			b.From = rapid.Int64Range(0, 5).Draw(rt, "from")
			if b.Source == "unknown" {
				b.From++ // one from byte 0 makes its source known
			}
			b.To = b.From + rapid.Int64Range(0, 2).Draw(rt, "bytes")
			if b.To > b.From {
				b.Points = make([]observation.Point, rapid.IntRange(0, 2).Draw(rt, "points"))
			}
			return change{batch: &b}
		}), 1, 8).Draw(rt, "appends")

		p := decide(appends, held, false)
		points, offsets := 0, map[int64]int64{}
		for _, s := range held {
			offsets[s.id] = s.stored
		}
		for i, c := range appends {
			id := held[c.key()].id
			var offset *observation.OffsetError
			switch refused := errors.As(p.results[i], &offset); {
			case refused != (c.batch.From != offsets[id]):
				rt.Fatalf("append %d of %+v to %d: got %v", i, *c.batch, offsets[id], p.results[i])
			case refused && offset.Have != offsets[id]:
				rt.Fatalf("append %d was told that %d bytes are stored, want %d", i, offset.Have, offsets[id])
			case !refused:
				offsets[id], points = c.batch.To, points+len(c.batch.Points)
			}
		}
		if len(p.points) != points {
			rt.Fatalf("%d points are stored, want %d", len(p.points), points)
		}
		for id, to := range p.offsets {
			if offsets[id] != to {
				rt.Fatalf("source %d moves to %d, want %d", id, to, offsets[id])
			}
		}

		committed := maps.Clone(held)
		for k, s := range committed {
			committed[k] = heldSource{s.id, offsets[s.id]}
		}
		again := decide(appends, committed, true)
		for i := range appends {
			if p.results[i] == nil && again.results[i] != nil {
				rt.Errorf("append %d was committed, and looking again it is refused: %v", i, again.results[i])
			}
		}
		for id, to := range again.offsets {
			if to < offsets[id] {
				rt.Errorf("source %d moves back to %d", id, to)
			}
		}
		if nothing := decide(appends, held, true); len(nothing.points) > points {
			rt.Errorf("what was not committed stores %d points the second time, %d the first", len(nothing.points), points)
		}
	})
}
