// SPDX-License-Identifier: Apache-2.0

// Package optimizetest holds every [optimize.Sampler] to its contract.
//
// A sampler has one test that calls [Run]. It draws spaces, seeds and results
// at random, and checks what must hold of every sampler: its points are in
// the space and on its steps, they are the same for the same seed and history,
// also in a new process that knows nothing but these, they do not repeat in a
// finite space, and they end when it is exhausted.
package optimizetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"diwan.dev/diwan/optimize"
)

// Subject is a sampler to test.
type Subject struct {
	// New returns the sampler for a space and a seed.
	New func(space *optimize.Space, seed uint64) (optimize.Sampler, error)
	// Finite is set for a sampler that only supports finite spaces.
	Finite bool
	// Spaces are those that a sampler is tested on which does not search any
	// space, from the smallest, of a few dozen points, to the largest, of more
	// than a hundred thousand. Nil: spaces are drawn.
	Spaces []*optimize.Space
	// Parameters are some that every space needs to have for the sampler.
	Parameters []optimize.Parameter
	// Objectives is the greatest number of objectives to search with, 1 if 0.
	Objectives int
	// IgnoresResults is set for a sampler whose points do not depend on
	// earlier results.
	IgnoresResults bool
	// Repeats is set for a sampler whose suggestions are more than their points,
	// so that it may suggest one again and does not end.
	Repeats bool
	// IgnoresSeed is set for a sampler that has one sequence for all seeds.
	IgnoresSeed bool
}

// Run holds a sampler to the contract.
func Run(t *testing.T, s Subject) {
	tests := map[string]func(context.Context, *rapid.T, Subject){"InSpace": testInSpace, "Rebuilt": testRebuilt}
	if !s.Repeats {
		tests["Exhausted"] = testExhausted
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) { test(t.Context(), rt, s) })
		})
	}
	if s.IgnoresResults {
		t.Run("TellOrder", func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) { testTellOrder(t.Context(), rt, s) })
		})
	}
	t.Run("Cancelled", func(t *testing.T) {
		t.Parallel()
		testCancelled(t, s)
	})
	if !s.IgnoresSeed {
		t.Run("Seeds", func(t *testing.T) {
			t.Parallel()
			testSeeds(t, s)
		})
	}
}

// search is a search under test.
type search struct {
	*optimize.History
	sampler optimize.Sampler
	repeats bool
}

func newSearch(rt *rapid.T, s Subject, space *optimize.Space, seed uint64) search {
	directions := rapid.SliceOfN(rapid.SampledFrom([]optimize.Direction{optimize.Minimize, optimize.Maximize}), 1, max(s.Objectives, 1)).Draw(rt, "directions")
	return search{optimize.NewHistory(space, directions...), newSampler(rt, s, space, seed), s.Repeats}
}

func newSampler(rt *rapid.T, s Subject, space *optimize.Space, seed uint64) optimize.Sampler {
	sampler, err := s.New(space, seed)
	if err != nil {
		rt.Fatalf("cannot make sampler: %v", err)
	}
	return sampler
}

// restored returns the search as it is after a restart: with a new sampler, and
// all else, the space too where it has no functions, from its saved form.
func (s search) restored(rt *rapid.T, subject Subject, seed uint64) *optimize.Study {
	data, err := optimize.ResumeStudy(s.History, s.sampler).Save()
	if err != nil {
		rt.Fatal(err)
	}
	o := optimize.LoadOptions{Sampler: func(space *optimize.Space) (optimize.Sampler, error) { return subject.New(space, seed) }}
	study, err := optimize.LoadStudy(data, o)
	if errors.Is(err, optimize.ErrNotSaved) {
		o.Space = s.Space()
		study, err = optimize.LoadStudy(data, o)
	}
	if err != nil {
		rt.Fatalf("%v:\n%s", err, data)
	}
	return study
}

// ask returns the next point, or false when the space is exhausted.
func (s search) ask(ctx context.Context, rt *rapid.T) (optimize.Point, bool) {
	p, err := s.sampler.Sample(ctx, s.History)
	size, finite := s.Space().Size()
	left := !finite || uint64(s.Distinct()) < size
	switch {
	case errors.Is(err, optimize.ErrExhausted):
		if left {
			rt.Fatalf("sampler says that the space is exhausted after %d of its points", s.Distinct())
		}
		return p, false
	case err != nil:
		rt.Fatalf("Sample: %v", err)
	case !left && !s.repeats:
		rt.Fatalf("sampler suggests %v although the space is exhausted", p)
	case s.Contains(p) && !s.repeats:
		rt.Fatalf("sampler suggests %v again", p)
	case !s.Space().Feasible(p):
		rt.Fatalf("sampler suggests %v, which violates a constraint", p)
	}
	return p, true
}

// tell draws what came of the suggestion with an index.
func (s search) tell(rt *rapid.T, index int) {
	r := optimize.Result{State: optimize.Complete}
	for range s.Directions() {
		r.Values = append(r.Values, rapid.Float64Range(-10, 10).Draw(rt, "value"))
	}
	switch rapid.IntRange(0, 12).Draw(rt, "result") {
	case 0, 1:
		return // stays pending
	case 2:
		r = optimize.Result{State: optimize.Failed}
	case 3:
		r = optimize.Result{State: optimize.Infeasible}
	case 4:
		r.State, r.Step = optimize.Stopped, rapid.IntRange(0, 100).Draw(rt, "step")
	case 5:
		r.Values[0] = rapid.SampledFrom([]float64{math.Inf(1), math.Inf(-1), 1e308, -1e308}).Draw(rt, "extreme")
	case 6:
		r.Violations = []float64{rapid.Float64Range(-1, 1).Draw(rt, "violation")}
	}
	if err := s.Tell(index, r); err != nil {
		rt.Fatalf("Tell: %v", err)
	}
}

func testInSpace(ctx context.Context, rt *rapid.T, s Subject) {
	space := drawSpace(rt, s)
	run := newSearch(rt, s, space, rapid.Uint64().Draw(rt, "seed"))
	for range rapid.IntRange(1, 40).Draw(rt, "trials") {
		if rapid.IntRange(0, 19).Draw(rt, "lost") == 0 {
			run.AddLost()
			continue
		}
		p, ok := run.ask(ctx, rt)
		if !ok {
			return
		}
		checkPoint(rt, space, p)
		run.tell(rt, run.Add(p))
	}
}

// checkPoint checks a point by what it looks like to a user.
func checkPoint(rt *rapid.T, space *optimize.Space, p optimize.Point) {
	values := map[string]string{}
	for i := range space.Len() {
		if name := space.Parameter(i).Name; p.Active(name) {
			values[name] = p.Text(name)
		}
	}
	for i := range space.Len() {
		parameter := space.Parameter(i)
		value, ok := values[parameter.Name]
		parent, hasParent := values[parameter.Parent]
		switch exists := parameter.Parent == "" || hasParent && slices.Contains(parameter.Where, parent); {
		case ok != exists:
			rt.Fatalf("%v: has a value of %q: %v, want %v", p, parameter.Name, ok, exists)
		case !ok:
			continue
		}
		if err := checkValue(parameter, value); err != nil {
			rt.Fatalf("parameter %+v: value %q: %v", parameter, value, err)
		}
	}
	again, err := space.Parse(p.Assignments())
	if err != nil || again.String() != p.String() {
		rt.Fatalf("%v reads back as %v, %v", p, again, err)
	}
}

func checkValue(p optimize.Parameter, value string) error {
	if p.List != nil {
		if !slices.Contains(p.List, value) {
			return errors.New("it is not in the list")
		}
		return nil
	}
	v, err := strconv.ParseFloat(value, 64)
	switch {
	case err != nil || math.IsNaN(v) || math.IsInf(v, 0):
		return errors.New("it is not a number")
	case v < p.Min || v > p.Max:
		return errors.New("it is out of range")
	case p.Kind == optimize.KindInt && v != math.Trunc(v):
		return errors.New("it is not whole")
	case p.Step > 0:
		k := (v - p.Min) / p.Step
		if math.Abs(k-math.Round(k)) > 1e-6 {
			return fmt.Errorf("it is %v steps from min", k)
		}
	}
	return nil
}

// testRebuilt checks that a sampler is a function of its seed and the history:
// one that has come all the way and one after a restart agree at any moment.
func testRebuilt(ctx context.Context, rt *rapid.T, s Subject) {
	space, seed := drawSpace(rt, s), rapid.Uint64().Draw(rt, "seed")
	run := newSearch(rt, s, space, seed)
	for range rapid.IntRange(1, 20).Draw(rt, "trials") {
		p, ok := run.ask(ctx, rt)
		again, err := run.restored(rt, s, seed).Ask(ctx)
		if okAgain := err == nil; ok != okAgain || ok && p.String() != again.Point.String() {
			rt.Fatalf("suggestion %d is %v (%v), and rebuilt %v (%v)", run.Len(), p, ok, again.Point, err)
		}
		if !maps.Equal(p.Labels(), again.Point.Labels()) {
			rt.Fatalf("suggestion %d has the labels %v, and rebuilt %v", run.Len(), p.Labels(), again.Point.Labels())
		}
		if !ok {
			return
		}
		run.Add(p)
		if i := rapid.IntRange(0, run.Len()-1).Draw(rt, "told"); run.Trial(i).State == optimize.Pending {
			run.tell(rt, i)
		}
	}
}

// testExhausted asks for all points of a small space.
func testExhausted(ctx context.Context, rt *rapid.T, s Subject) {
	space := drawSmallSpace(rt, s)
	run := newSearch(rt, s, space, rapid.Uint64().Draw(rt, "seed"))
	size, _ := space.Size()
	for {
		p, ok := run.ask(ctx, rt)
		if !ok {
			break
		}
		run.tell(rt, run.Add(p))
	}
	if uint64(run.Len()) != size {
		rt.Fatalf("%d suggestions from a space of %d points", run.Len(), size)
	}
}

// testTellOrder tells the results of two searches in different orders.
func testTellOrder(ctx context.Context, rt *rapid.T, s Subject) {
	space, seed := drawSpace(rt, s), rapid.Uint64().Draw(rt, "seed")
	one := newSearch(rt, s, space, seed)
	other := search{optimize.NewHistory(space, one.Directions()...), newSampler(rt, s, space, seed), s.Repeats}
	for range rapid.IntRange(1, 20).Draw(rt, "trials") {
		p, ok := one.ask(ctx, rt)
		q, _ := other.ask(ctx, rt)
		if p.String() != q.String() {
			rt.Fatalf("suggestion %d is %v, and with other results %v", one.Len(), p, q)
		}
		if !ok {
			return
		}
		one.tell(rt, one.Add(p))
		other.Add(q) // stays pending
	}
}

func testCancelled(t *testing.T, s Subject) {
	space := s.largeSpace(t)
	sampler, err := s.New(space, 1)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := sampler.Sample(ctx, optimize.NewHistory(space, optimize.Minimize)); !errors.Is(err, context.Canceled) {
		t.Errorf("Sample with a cancelled context: got %v, want context.Canceled", err)
	}
}

// testSeeds checks that seeds matter, neighboring ones too.
func testSeeds(t *testing.T, s Subject) {
	space := s.largeSpace(t)
	first := map[string]uint64{}
	for seed := range uint64(50) {
		sampler, err := s.New(space, seed)
		if err != nil {
			t.Fatal(err)
		}
		p, err := sampler.Sample(t.Context(), optimize.NewHistory(space, optimize.Minimize))
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := first[p.String()]; ok {
			t.Errorf("seeds %d and %d both begin with %v", other, seed, p)
		}
		first[p.String()] = seed
	}
}
