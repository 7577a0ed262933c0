// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"context"
	"sync"
)

// Options say how a [Study] searches.
type Options struct {
	// Sampler suggests the points; nil is NewRandom(0).
	Sampler Sampler
	// Direction says which values of the objective are better.
	Direction Direction
}

// Study is a search by asking and telling. Its methods may be called by
// several goroutines at once; which of them gets which suggestion is then left
// to chance, but the suggestions of a sampler that ignores results are not.
type Study struct {
	sampler Sampler

	mu      sync.Mutex
	history *History
}

// NewStudy returns a study of a space that nothing is known of.
func NewStudy(space *Space, o Options) *Study {
	return ResumeStudy(NewHistory(space, o.Direction), o.Sampler)
}

// ResumeStudy returns a study that goes on from a history, which it owns from
// then on. A nil sampler is NewRandom(0).
func ResumeStudy(h *History, sampler Sampler) *Study {
	if sampler == nil {
		sampler = NewRandom(0)
	}
	return &Study{sampler: sampler, history: h}
}

// Ask returns the next suggestion, pending. The error is [ErrExhausted] when a
// finite space has none left.
func (s *Study) Ask(ctx context.Context) (Trial, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.sampler.Sample(ctx, s.history)
	if err != nil {
		return Trial{}, err
	}
	return s.history.Trial(s.history.Add(p)), nil
}

// Tell records the objective's value at a suggestion. One that is not a number
// counts as a failure. See [History.Tell] for the errors.
func (s *Study) Tell(index int, value float64) error {
	return s.tell(index, Result{State: Complete, Value: value})
}

// Fail records that a suggestion ended without a value.
func (s *Study) Fail(index int) error {
	return s.tell(index, Result{State: Failed})
}

func (s *Study) tell(index int, r Result) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.history.Tell(index, r)
}

// Best returns the complete trial with the best value, the earliest of several.
func (s *Study) Best() (Trial, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.history.Best()
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
