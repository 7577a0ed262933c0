// SPDX-License-Identifier: Apache-2.0

package observationtest

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"diwan.dev/diwan/observation"
)

// model is a simple reference implementation of a store: everything stored,
// in the order of arrival.
type model struct {
	offsets map[key]int64
	points  []held
}

type key struct {
	trial  observation.Trial
	source string
}

type held struct {
	key
	observation.Point
}

// testModel compares a store with a model over random sequences of calls;
// where reopen is set, closing and opening it again is one of them.
func testModel(t *testing.T, open Open, reopen bool) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		ctx := t.Context()
		store, err := open(ctx, dir)
		if err != nil {
			rt.Fatalf("cannot open store: %v", err)
		}
		defer func() { _ = store.Close() }()
		m := &model{offsets: map[key]int64{}}
		actions := map[string]func(*rapid.T){
			"Append":       func(rt *rapid.T) { m.append(ctx, rt, store) },
			"DeleteSource": func(rt *rapid.T) { m.deleteSource(ctx, rt, store) },
			"Delete":       func(rt *rapid.T) { m.delete(ctx, rt, store) },
			"":             func(rt *rapid.T) { m.compare(ctx, rt, store) },
		}
		if reopen {
			actions["Reopen"] = func(rt *rapid.T) {
				if err := store.Close(); err != nil {
					rt.Fatalf("Close: %v", err)
				}
				if store, err = open(ctx, dir); err != nil {
					rt.Fatalf("cannot open store again: %v", err)
				}
			}
		}
		rt.Repeat(actions)
	})
}

func drawKey(rt *rapid.T) key {
	return key{
		trial: observation.Trial{
			Namespace: rapid.SampledFrom([]string{"default", "team"}).Draw(rt, "namespace"),
			Name:      rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "trial"),
		},
		source: rapid.SampledFrom([]string{"main/0", "main/1"}).Draw(rt, "source"),
	}
}

func drawPoint(rt *rapid.T) observation.Point {
	return observation.Point{
		Time:   at(float64(rapid.IntRange(0, 5).Draw(rt, "second"))),
		Metric: rapid.SampledFrom([]string{"loss", "acc"}).Draw(rt, "metric"),
		Value:  rapid.StringMatching(`[0-9.e\p{Greek}-]{0,8}`).Draw(rt, "value"),
	}
}

func (m *model) append(ctx context.Context, rt *rapid.T, s observation.Store) {
	k := drawKey(rt)
	have := m.offsets[k]
	from := have
	if rapid.IntRange(0, 4).Draw(rt, "miss") == 0 {
		from = rapid.Int64Range(0, have+3).Draw(rt, "from")
	}
	b := observation.Batch{
		Source: k.source, From: from, To: from + rapid.Int64Range(1, 9).Draw(rt, "bytes"),
		Points: rapid.SliceOfN(rapid.Custom(drawPoint), 0, 4).Draw(rt, "points"),
	}
	err := s.Append(ctx, k.trial, b)
	var offset *observation.OffsetError
	switch {
	case from != have && (!errors.As(err, &offset) || offset.Have != have || offset.Got != from):
		rt.Fatalf("Append from %d to a source stored up to %d: got %v, want an OffsetError", from, have, err)
	case from == have && err != nil:
		rt.Fatalf("Append: %v", err)
	case from == have:
		m.offsets[k] = b.To
		for _, p := range b.Points {
			m.points = append(m.points, held{k, p})
		}
	}
}

func (m *model) deleteSource(ctx context.Context, rt *rapid.T, s observation.Store) {
	k := drawKey(rt)
	if err := s.DeleteSource(ctx, k.trial, k.source); err != nil {
		rt.Fatalf("DeleteSource: %v", err)
	}
	delete(m.offsets, k)
	m.points = slices.DeleteFunc(m.points, func(h held) bool { return h.key == k })
}

func (m *model) delete(ctx context.Context, rt *rapid.T, s observation.Store) {
	trial := drawKey(rt).trial
	if err := s.Delete(ctx, trial); err != nil {
		rt.Fatalf("Delete: %v", err)
	}
	for k := range m.offsets {
		if k.trial == trial {
			delete(m.offsets, k)
		}
	}
	m.points = slices.DeleteFunc(m.points, func(h held) bool { return h.trial == trial })
}

// compare asks the store one random question.
func (m *model) compare(ctx context.Context, rt *rapid.T, s observation.Store) {
	k := drawKey(rt)
	offset, err := s.Offset(ctx, k.trial, k.source)
	if err != nil || offset != m.offsets[k] {
		rt.Fatalf("Offset(%v) = %d, %v; want %d", k, offset, err, m.offsets[k])
	}
	q := observation.Query{
		Metric: rapid.SampledFrom([]string{"", "", "loss"}).Draw(rt, "metric"),
		Limit:  rapid.SampledFrom([]int{0, 0, 3}).Draw(rt, "limit"),
	}
	if rapid.Bool().Draw(rt, "bounded") {
		q.Start, q.End = at(1), at(3)
	}
	got, err := s.Points(ctx, k.trial, q)
	if err != nil {
		rt.Fatalf("Points(%v): %v", q, err)
	}
	if diff := cmp.Diff(m.query(k.trial, q), got); diff != "" {
		rt.Fatalf("Points(%v, %+v): -want, +got:\n%s", k.trial, q, diff)
	}
}

func (m *model) query(trial observation.Trial, q observation.Query) []observation.Point {
	var points []observation.Point
	for _, h := range m.points {
		if h.trial == trial && q.Selects(h.Point) {
			points = append(points, h.Point)
		}
	}
	slices.SortStableFunc(points, func(a, b observation.Point) int { return a.Time.Compare(b.Time) })
	if q.Limit > 0 && len(points) > q.Limit {
		points = points[:q.Limit]
	}
	return points
}
