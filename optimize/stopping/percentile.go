// SPDX-License-Identifier: Apache-2.0

package stopping

import (
	"fmt"
	"math"
	"slices"
)

// PercentileConfig configures a rule that stops a trial when its best value so
// far is worse than a percentile of the complete trials' values at the same
// step.
type PercentileConfig struct {
	// Percentile is the percentile of the complete trials, from 0 to 100, that
	// a trial must not fall behind: with 25 only a trial that would be among
	// their best quarter continues. The default is 50, their median.
	Percentile float64
	// StartupTrials is how many complete trials the rule needs, at least 0.
	// The default, 5, is Optuna's.
	StartupTrials int
	// WarmupSteps are the first steps, at least 0, up to which no trial is
	// judged: from the step WarmupSteps on it is. The default is 0.
	WarmupSteps int
	// IntervalSteps is how many steps apart a trial is judged, at least 1.
	// Where it does not report at each step, it is judged at the first report
	// in each interval. The default is 1: at each.
	IntervalSteps int
	// MinTrials is how many complete trials must have reported up to the step,
	// at least 1, which is the default.
	MinTrials int
}

// DefaultPercentileConfig returns the defaults, those of Optuna's median rule.
func DefaultPercentileConfig() PercentileConfig {
	return PercentileConfig{Percentile: 50, StartupTrials: 5, IntervalSteps: 1, MinTrials: 1}
}

type percentile struct{ PercentileConfig }

// NewPercentile returns the percentile rule. It is a [Limiter].
func NewPercentile(p PercentileConfig) (Rule, error) {
	if !(p.Percentile >= 0 && p.Percentile <= 100) {
		return nil, fmt.Errorf("setting percentile is %v: want a number from 0 to 100", p.Percentile)
	}
	for _, each := range []struct {
		name         string
		value, least int
	}{{"n_startup_trials", p.StartupTrials, 0}, {"n_warmup_steps", p.WarmupSteps, 0}, {"interval_steps", p.IntervalSteps, 1}, {"n_min_trials", p.MinTrials, 1}} {
		if err := atLeast(each.name, each.value, each.least); err != nil {
			return nil, err
		}
	}
	return percentile{p}, nil
}

func (p percentile) Judge(c *Curves, trial int) Verdict {
	curve := c.running(trial)
	if curve == nil || !due(curve, p.WarmupSteps, p.IntervalSteps) {
		return Verdict{}
	}
	last := curve.Len() - 1
	others := p.losses(c, curve.steps[last])
	if others == nil {
		return Verdict{}
	}
	limit := quantile(others, p.Percentile/100)
	if !(curve.best[last] > limit) {
		return Verdict{}
	}
	return Verdict{true, fmt.Sprintf("its best value up to step %d, %s, is %s %s, which %s%% of %d complete trials had reached by then",
		curve.steps[last], c.text(curve.best[last]), c.worse(), c.text(limit), format(p.Percentile), len(others))}
}

// losses returns the sorted losses to compare with at a step, nil where they
// are too few.
func (p percentile) losses(c *Curves, step int) []float64 {
	if len(c.complete()) < p.StartupTrials {
		return nil
	}
	others := c.ranked(lastLoss, step)
	if len(others) < p.MinTrials {
		return nil
	}
	return others
}

// Limits returns a limit for each step at which a trial that reports at all
// steps is judged and complete trials may have come to other values.
func (p percentile) Limits(c *Curves) []Limit {
	var limits []Limit
	last := math.MinInt
	for _, step := range stepsOf(c.complete(), 1) {
		if late := max(step-p.WarmupSteps, 0) % p.IntervalSteps; late > 0 {
			step += p.IntervalSteps - late // it is judged then
		}
		if step = max(step, p.WarmupSteps); step == last {
			continue
		}
		last = step
		if others := p.losses(c, step); others != nil {
			limits = append(limits, c.limit(step, quantile(others, p.Percentile/100)))
		}
	}
	return limits
}

// due reports whether a curve's last report is the first one in an interval of
// steps, counted from the warm-up's end.
func due(curve *Curve, warmup, interval int) bool {
	last := curve.steps[curve.Len()-1]
	if last < warmup {
		return false
	}
	if curve.Len() == 1 {
		return true
	}
	before := curve.steps[curve.Len()-2]
	return before < warmup || (before-warmup)/interval < (last-warmup)/interval
}

// stepsOf returns the steps, sorted, at which some curves have a report, from the
// first on at which one of them has so many.
func stepsOf(curves []*Curve, reports int) []int {
	first := math.MaxInt
	var steps []int
	for _, curve := range curves {
		steps = append(steps, curve.steps...)
		if curve.Len() >= reports {
			first = min(first, curve.steps[reports-1])
		}
	}
	slices.Sort(steps)
	from, _ := slices.BinarySearch(steps, first)
	return slices.Compact(steps[from:])
}
