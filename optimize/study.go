// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"context"
	"sync"

	"diwan.dev/diwan/optimize/stopping"
)

// Options say how a [Study] searches.
type Options struct {
	// Sampler suggests the points; nil is [NewAuto] with Seed and Budget.
	Sampler Sampler
	// Directions say which values of each objective are better; none is one
	// objective that is minimised.
	Directions []Direction
	// Seed and Budget are for the sampler where Sampler is nil.
	Seed   uint64
	Budget Budget
	// Stopping is the rule by which [Study.Report] stops trials; nil stops
	// none.
	Stopping stopping.Rule
}

// Study is a search by asking and telling. Its methods may be called by
// several goroutines at once; which of them gets which suggestion is then left
// to chance, but the suggestions of a sampler that ignores results are not.
type Study struct {
	sampler Sampler

	mu      sync.Mutex
	history *History
	queue   []Point
	rule    stopping.Rule // nil: none
	curves  *stopping.Curves
}

// NewStudy returns a study of a space that nothing is known of.
func NewStudy(space *Space, o Options) *Study {
	if o.Sampler == nil {
		o.Sampler = mustAuto(space, o.Seed, o.Budget)
	}
	s := ResumeStudy(NewHistory(space, o.Directions...), o.Sampler)
	s.rule = o.Stopping
	return s
}

// ResumeStudy returns a study that goes on from a history, which it owns from
// then on.
func ResumeStudy(h *History, sampler Sampler) *Study {
	return &Study{sampler: sampler, history: h, curves: newCurves(h)}
}

// Enqueue has points suggested before those of the sampler.
func (s *Study) Enqueue(points ...Point) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range points {
		s.history.check(p)
	}
	s.queue = append(s.queue, points...)
}

// Ask returns the next suggestion, pending. The error is [ErrExhausted] when a
// finite space has none left.
func (s *Study) Ask(ctx context.Context) (Trial, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) > 0 {
		p := s.queue[0]
		s.queue = s.queue[1:]
		return s.history.Trial(s.history.Add(p)), nil
	}
	p, err := s.sampler.Sample(ctx, s.history)
	if err != nil {
		return Trial{}, err
	}
	return s.history.Trial(s.history.Add(p)), nil
}

// Tell records the objectives' values at a suggestion, one for each. One that
// is not a number counts as a failure. See [History.Tell] for the errors.
func (s *Study) Tell(index int, values ...float64) error {
	return s.TellResult(index, Values(values...))
}

// Fail records that a suggestion ended without a value.
func (s *Study) Fail(index int) error {
	return s.TellResult(index, Result{State: Failed})
}

// TellResult records what came of a suggestion.
func (s *Study) TellResult(index int, r Result) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tell(index, r)
}

// Best returns the complete and feasible trial with the best value of the
// first objective, the earliest of several.
func (s *Study) Best() (Trial, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.history.Best()
}

// Pareto returns the trials that no other dominates. See [History.Pareto].
func (s *Study) Pareto() []Trial {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.history.Pareto()
}

// Trials returns a copy of what is known, by index.
func (s *Study) Trials() []Trial {
	s.mu.Lock()
	defer s.mu.Unlock()
	trials := make([]Trial, s.history.Len())
	for i := range trials {
		trials[i] = s.history.Trial(i)
	}
	return trials
}

func (s *Study) trial(index int) Trial {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.history.Trial(index)
}
