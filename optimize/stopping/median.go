// SPDX-License-Identifier: Apache-2.0

package stopping

import "fmt"

// MedianConfig configures the median stopping rule of Google Vizier (Golovin et
// al., "Google Vizier: a service for black-box optimization", KDD 2017): a
// trial stops when the best value that it has had up to a step is worse than
// the median, over the complete trials, of the averages of their values up to
// the same step.
type MedianConfig struct {
	// MinTrials is how many complete trials with a report up to the step the
	// rule needs, at least 1. The default, 3, is Katib's.
	MinTrials int
	// StartStep is the number of a trial's reports from which on it is judged,
	// at least 1. The default, 4, is Katib's.
	StartStep int
}

// DefaultMedianConfig returns the defaults.
func DefaultMedianConfig() MedianConfig { return MedianConfig{MinTrials: 3, StartStep: 4} }

type median struct{ MedianConfig }

// NewMedian returns the median stopping rule. It is a [Limiter].
func NewMedian(m MedianConfig) (Rule, error) {
	if err := atLeast("min_trials_required", m.MinTrials, 1); err != nil {
		return nil, err
	}
	if err := atLeast("start_step", m.StartStep, 1); err != nil {
		return nil, err
	}
	return median{m}, nil
}

func (m median) Judge(c *Curves, trial int) Verdict {
	curve := c.running(trial)
	if curve == nil || curve.Len() < m.StartStep {
		return Verdict{}
	}
	last := curve.Len() - 1
	averages := c.ranked(averageLoss, curve.steps[last])
	if len(averages) < m.MinTrials {
		return Verdict{}
	}
	middle := quantile(averages, 0.5)
	if !(curve.best[last] > middle) {
		return Verdict{}
	}
	return Verdict{true, fmt.Sprintf("its best value up to step %d, %s, is %s %s, the median of the averages of %d complete trials up to then",
		curve.steps[last], c.text(curve.best[last]), c.worse(), c.text(middle), len(averages))}
}

// Limits returns a limit for each step at which a complete trial reported,
// from the first on at which one of them had StartStep reports.
func (m median) Limits(c *Curves) []Limit {
	var limits []Limit
	for _, step := range stepsOf(c.complete(), m.StartStep) {
		averages := c.ranked(averageLoss, step)
		if len(averages) < m.MinTrials {
			continue
		}
		limits = append(limits, c.limit(step, quantile(averages, 0.5)))
	}
	return limits
}
