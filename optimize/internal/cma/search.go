// SPDX-License-Identifier: Apache-2.0

package cma

import (
	"cmp"
	"math"
	"slices"
)

// Restart says what follows a descent that has converged.
type Restart int

// The restart strategies.
const (
	// None goes on with the same distribution.
	None Restart = iota
	// IPOP starts over with twice the population (A. Auger and N. Hansen, "A
	// restart CMA evolution strategy with increasing population size", 2005).
	IPOP
	// BIPOP does so in turn with smaller populations, and gives both an equal
	// number of evaluations (N. Hansen, "Benchmarking a BI-population CMA-ES on
	// the BBOB-2009 function testbed", 2009).
	BIPOP
)

// Config says how a [Search] searches the unit cube.
type Config struct {
	// Mean and Sigma are those of the first distribution.
	Mean  []float64
	Sigma float64
	// Covariance of the first distribution, n×n by rows; nil is the identity.
	Covariance []float64
	// Size is the number of points of a generation, from 2.
	Size      int
	Separable bool
	Grid      Grid
	Restart   Restart
	// Model is set for a search that saves evaluations by a model.
	Model bool
	// Normal fills z with independent standard normal numbers that belong to
	// draw k of a generation, the same whenever it is called.
	Normal func(generation, k int, z []float64)
	// Round returns the point that is evaluated for one in the unit cube.
	Round func(u []float64) []float64
}

// Search is CMA-ES as a sequence of results. Its state is a function of its
// configuration and of the results told, in their order.
type Search struct {
	config     Config
	dist       *Distribution
	generation int
	candidates []candidate
	told       []bool   // by candidate
	order      []int    // of candidates, the most promising first
	results    []result // of this generation
	archive    []sample // the newest of this descent
	seen       int      // results of this descent
	model      *model
	fitted     int // value of seen when the model was fitted
	descent    descent
}

// candidate is a point of the generation.
type candidate struct {
	x       []float64 // as drawn
	inside  []float64 // folded into the cube
	rounded []float64 // as evaluated
	foreign bool
}

// result is a member of a generation with its rank: by violation, then value.
type result struct {
	Member
	violation, value float64
}

// NewSearch returns a search that nothing was told.
func NewSearch(c Config) *Search {
	s := &Search{config: c}
	s.dist = NewDistribution(c.Mean, c.Sigma, c.Size, c.Separable, c.Grid)
	if c.Covariance != nil {
		s.dist.Shape(c.Covariance)
	}
	s.descent.begin(s.dist)
	s.draw()
	return s
}

// Clone returns a search that goes on from the same state.
func (s *Search) Clone() *Search {
	c := *s
	c.dist = s.dist.clone()
	c.told = slices.Clone(s.told)
	c.results, c.archive = slices.Clip(s.results), slices.Clip(s.archive)
	c.descent.history = slices.Clip(s.descent.history)
	return &c
}

// Generation returns how many generations have ended.
func (s *Search) Generation() int { return s.generation }

// Candidate returns a point of the generation that is not evaluated yet: that at
// a place, from 0, of the order in which it is best to evaluate them, or the
// next after it, and the place that follows. It is nil when there is none.
func (s *Search) Candidate(place int) (u []float64, following int) {
	for ; place < len(s.order); place++ {
		if k := s.order[place]; !s.told[k] {
			return s.candidates[k].inside, place + 1
		}
	}
	return nil, place
}

// sort has the most promising candidates come first.
func (s *Search) sort() {
	s.order = make([]int, len(s.candidates))
	values := make([]float64, len(s.candidates))
	for k, c := range s.candidates {
		if s.order[k] = k; s.model != nil {
			values[k] = s.model.predict(c.rounded)
		}
	}
	slices.SortStableFunc(s.order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
}

// Extra returns a point of the distribution that is not one of the generation,
// for more workers than that has points; another for each k.
func (s *Search) Extra(k int) []float64 { return s.candidate(s.dist.Size() + k).inside }

// attempts is how often a point outside the cube is drawn again.
const attempts = 10

// candidate returns draw k of the generation. A point outside the cube is drawn
// again a few times, and then folded back into it at the bounds.
func (s *Search) candidate(k int) candidate {
	n := len(s.dist.mean)
	var x []float64
	z := make([]float64, n)
	for i := range attempts {
		s.config.Normal(s.generation, k*attempts+i, z)
		if x = s.dist.Draw(z); isInside(x) {
			break
		}
	}
	inside := make([]float64, n)
	for i := range x {
		inside[i] = fold(x[i])
	}
	return candidate{x: x, inside: inside, rounded: s.config.Round(inside)}
}

func isInside(x []float64) bool {
	for _, v := range x {
		if !(v >= 0 && v <= 1) {
			return false
		}
	}
	return true
}

// fold mirrors a number at 0 and 1 until it is between them.
func fold(x float64) float64 {
	x = math.Abs(math.Mod(x, 2))
	return math.Min(x, 2-x)
}

// draw draws the candidates of the generation. The first is the optimum of the
// model, where there is one.
func (s *Search) draw() {
	s.candidates = make([]candidate, 0, s.dist.Size())
	s.results = nil
	if s.model != nil {
		x := s.model.optimum(s.dist)
		s.candidates = append(s.candidates, candidate{x: x, inside: x, rounded: s.config.Round(x), foreign: true})
	}
	for k := len(s.candidates); k < s.dist.Size(); k++ {
		s.candidates = append(s.candidates, s.candidate(k))
	}
	s.told = make([]bool, len(s.candidates))
	s.sort()
}

// Tell tells what came of a point, which is as Round returns it: a value to be
// minimized, and by how much it violates constraints, 0 if not at all. A value
// that is not a number, or +Inf, is a failure. The point may be any: one that is
// not of the generation takes part in it as well.
func (s *Search) Tell(rounded []float64, value, violation float64) {
	if math.IsNaN(value) || math.IsInf(value, 1) {
		value, violation = math.Inf(1), math.Inf(1)
	}
	member := Member{X: rounded, Foreign: true}
	for k, c := range s.candidates {
		if !s.told[k] && slices.Equal(c.rounded, rounded) {
			s.told[k] = true
			member = Member{X: c.x, Foreign: c.foreign}
			break
		}
	}
	s.results = append(s.results, result{member, violation, value})
	s.remember(sample{rounded, violation, value})
	if len(s.results) >= s.dist.Size() || s.config.Model && s.foresee() {
		s.endGeneration()
	}
}

// foresee has the model stand in for the evaluations that are left of the
// generation if it is good enough, and reports whether it is. Of the large
// generations after restarts, which are there to look farther than a model does,
// most are evaluated.
func (s *Search) foresee() bool {
	const most = 2 // first generations
	if s.dist.Size()-len(s.results) > most*s.config.Size || !s.learn() {
		return false
	}
	for k, c := range s.candidates {
		if !s.told[k] {
			violation, value := s.model.merit.at(s.model.predict(c.rounded))
			s.results = append(s.results, result{Member{c.x, c.foreign}, violation, value})
		}
	}
	return true
}

func (s *Search) endGeneration() {
	s.results = slices.Clone(s.results) // which clones of the search share
	slices.SortStableFunc(s.results, func(a, b result) int {
		return cmp.Or(cmp.Compare(a.violation, b.violation), cmp.Compare(a.value, b.value))
	})
	members := make([]Member, s.dist.Size())
	for i := range members {
		members[i] = s.results[i].Member
	}
	s.dist.Update(members)
	for i, m := range s.dist.mean {
		s.dist.mean[i] = math.Min(math.Max(m, 0), 1)
	}
	s.generation++
	s.descent.note(s.results)
	if s.config.Restart != None && s.descent.converged(s.dist) {
		s.restart()
	}
	s.draw()
}
