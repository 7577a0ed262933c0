// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"errors"
	"fmt"

	"diwan.dev/diwan/optimize/stopping"
)

// ErrStopped is wrapped by the error of an objective that ends early because
// [Study.Report] said so.
var ErrStopped = errors.New("trial is stopped early")

// StopEarly sets the rule by which trials are stopped, which is that of
// [Options] in a new study; nil stops none. It sees what was reported before,
// too.
func (s *Study) StopEarly(rule stopping.Rule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rule = rule
}

// Report records the value that a trial's first objective has at a step, which
// counts what the trial likes, such as epochs, and says whether the trial
// should stop, and why. A trial that stops is told by [Study.Stop]. Reports of
// trials that have ended change no verdict on them, but those on others: a
// study that is resumed is so told what was reported before.
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

// tell records what came of a suggestion.
func (s *Study) tell(index int, r Result) error {
	if err := s.history.Tell(index, r); err != nil {
		return err
	}
	s.curves.End(index, s.history.trials[index].curveState())
	return nil
}

// newCurves returns the learning curves of a history, of which nothing was
// reported yet.
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
