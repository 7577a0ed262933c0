// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"diwan.dev/diwan/optimize/stopping"
)

// Options say how a [Study] searches.
type Options struct {
	// Sampler suggests the points; nil is [NewAuto] with Seed and Budget.
	Sampler Sampler
	// Directions say which values of each objective are better; none is one
	// objective that is minimized.
	Directions []Direction
	// Seed and Budget are for the sampler where Sampler is nil.
	Seed   uint64
	Budget Budget
	// Stopping is the rule with which [Study.Report] stops trials; nil stops
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

// NewStudy returns a study of a space that nothing is known of. A study without
// a space suggests nothing: [Study.Ask] returns [ErrNoSpace].
func NewStudy(space *Space, o Options) *Study {
	if o.Sampler == nil && space.check() == nil {
		o.Sampler = mustAuto(Problem{space, o.Seed, o.Budget})
	}
	s := ResumeStudy(NewHistory(space, o.Directions...), o.Sampler)
	s.rule = o.Stopping
	return s
}

// ResumeStudy returns a study that continues from a history, which it owns
// from then on.
func ResumeStudy(h *History, sampler Sampler) *Study {
	return &Study{sampler: sampler, history: h, curves: newCurves(h)}
}

// Enqueue queues points to be suggested before those of the sampler.
func (s *Study) Enqueue(points ...Point) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range points {
		s.history.check(p)
	}
	s.queue = append(s.queue, points...)
}

// Ask returns the next suggestion, pending. The error is [ErrExhausted] when a
// finite space has none left, and wraps [ErrNoSpace] where the study has no space.
func (s *Study) Ask(ctx context.Context) (Trial, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) > 0 {
		p := s.queue[0]
		s.queue = s.queue[1:]
		return s.history.Trial(s.history.Add(p)), nil
	}
	if err := s.history.space.check(); err != nil {
		return Trial{}, fmt.Errorf("cannot ask for a suggestion: %w", err)
	}
	p, err := s.sampler.Sample(ctx, s.history)
	if err != nil {
		return Trial{}, err
	}
	return s.history.Trial(s.history.Add(p)), nil
}

// Tell records the objectives' values at a suggestion, one for each. One that
// is not finite, such as the loss of a run that diverged, counts as a failure. See [History.Tell] for the errors.
func (s *Study) Tell(index int, values ...float64) error {
	return s.TellResult(index, Values(values...))
}

// Fail records that a suggestion ended without a value.
func (s *Study) Fail(index int) error {
	return s.TellResult(index, Result{State: Failed})
}

// TellResult records the result of a suggestion.
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

// Trials returns a copy of the trials, by index.
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

// ErrStopped is wrapped by the error of an objective that ends early because
// [Study.Report] said so.
var ErrStopped = errors.New("trial is stopped early")

// StopEarly sets the early stopping rule, initially that of [Options]; nil
// stops none. It also sees earlier reports.
func (s *Study) StopEarly(rule stopping.Rule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rule = rule
}

// Report records the value of a trial's first objective at a step, which
// counts anything, such as epochs, and returns whether the trial should stop,
// and why. Call [Study.Stop] for a trial that stops. Reports of ended trials
// affect only the verdicts on others: this is how a resumed study learns
// earlier reports.
func (s *Study) Report(index, step int, value float64) (stop bool, reason string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if index < 0 || index >= s.history.Len() {
		return false, "", fmt.Errorf("cannot record report of suggestion %d: there are %d suggestions, counted from 0", index, s.history.Len())
	}
	s.curves.Report(index, step, value)
	s.curves.End(index, s.history.trials[index].curveState())
	if s.rule == nil {
		return false, "", nil
	}
	v := s.rule.Judge(s.curves, index)
	return v.Stop, v.Reason, nil
}

// Stop records that a trial was stopped early, with the last value and step
// that it reported. In a study with several objectives they have no values
// then.
func (s *Study) Stop(index int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := Result{State: Stopped}
	if step, value, ok := s.curves.Last(index); ok {
		r.Values, r.Step = []float64{value}, step
	}
	return s.tell(index, r)
}

// tell records the result of a suggestion.
func (s *Study) tell(index int, r Result) error {
	if err := s.history.Tell(index, r); err != nil {
		return err
	}
	s.curves.End(index, s.history.trials[index].curveState())
	return nil
}

// newCurves returns the learning curves of a history, without any reports
// yet.
func newCurves(h *History) *stopping.Curves {
	if h.Direction() == Maximize {
		return stopping.NewCurves(stopping.Maximize)
	}
	return stopping.NewCurves(stopping.Minimize)
}

// curveState returns the state of a trial's learning curve.
func (r Result) curveState() stopping.State {
	switch r.State {
	case Pending:
		return stopping.Running
	case Complete:
		return stopping.Complete
	case Stopped:
		return stopping.Stopped
	}
	return stopping.Failed
}
