// SPDX-License-Identifier: Apache-2.0

package stopping

import (
	"fmt"
	"math"
)

// FittingConfig configures a rule that extrapolates a trial's curve to the step
// at which trials end, and stops the trial when the probability that its value
// will then beat the best complete trial is small. The forecast comes from a
// Bayesian mixture of exponential and power-law curves.
type FittingConfig struct {
	// Probability is that below which a trial stops, from 0 to 1. The default
	// is 0.05.
	Probability float64
	// StartStep is the number of a trial's reports from which on it is judged,
	// at least 3. The default is 6.
	StartStep int
	// MaxStep is the step at which trials end. 0, the default, is auto: the
	// last step of the longest complete trial.
	MaxStep int
	// MinTrials is how many complete trials the rule needs, at least 1, to
	// learn how much curves improve. The default is 3.
	MinTrials int
}

// DefaultFittingConfig returns the defaults.
func DefaultFittingConfig() FittingConfig {
	return FittingConfig{Probability: 0.05, StartStep: 6, MinTrials: 3}
}

type fitting struct{ FittingConfig }

// NewFitting returns the rule of extrapolated curves.
func NewFitting(f FittingConfig) (Rule, error) {
	if !(f.Probability >= 0 && f.Probability <= 1) {
		return nil, fmt.Errorf("setting probability is %v: want a number from 0 to 1", f.Probability)
	}
	for _, each := range []struct {
		name         string
		value, least int
	}{{"start_step", f.StartStep, 3}, {"max_step", f.MaxStep, 0}, {"min_trials_required", f.MinTrials, 1}} {
		if err := atLeast(each.name, each.value, each.least); err != nil {
			return nil, err
		}
	}
	return fitting{f}, nil
}

func (f fitting) Judge(c *Curves, trial int) Verdict {
	curve, complete := c.running(trial), c.complete()
	if curve == nil || curve.Len() < f.StartStep || len(complete) < f.MinTrials {
		return Verdict{}
	}
	end := f.MaxStep
	if end == 0 {
		end, _ = c.horizon()
	}
	last, target := curve.Len()-1, math.Inf(1)
	for _, other := range complete {
		target = math.Min(target, other.losses[other.Len()-1])
	}
	if curve.steps[last] >= end || curve.best[last] <= target || math.IsInf(target, 0) {
		return Verdict{}
	}
	if math.IsInf(curve.losses[last], 1) {
		return Verdict{true, fmt.Sprintf("its value at step %d is not a number from which it could beat the best, %s", curve.steps[last], c.text(target))}
	}
	scale := largest(append(complete, curve))
	expected, ok := forecastOf(curve, end, scale, improvement(append(complete, curve), scale))
	if !ok {
		return Verdict{}
	}
	p := expected.below(target / scale)
	if p >= f.Probability {
		return Verdict{}
	}
	return Verdict{true, fmt.Sprintf("its value at step %d, %s, is extrapolated to about %s at step %d: the probability of beating the best, %s, is %s, less than %s",
		curve.steps[last], c.text(curve.losses[last]), c.text(expected.mean()*scale), end, c.text(target), format(p), format(f.Probability))}
}

// forecastOf extrapolates a curve's finite losses, divided by a scale, to a step
// beyond its last, and returns false where there is nothing to go by.
func forecastOf(curve *Curve, end int, scale, improvement float64) (forecast, bool) {
	first := curve.steps[0]
	way := float64(end) - float64(first)
	var xs, ys []float64
	for i, loss := range curve.losses {
		if !math.IsInf(loss, 0) {
			xs, ys = append(xs, (float64(curve.steps[i])-float64(first))/way), append(ys, loss/scale)
		}
	}
	if len(xs) < 3 || !(improvement > 0) {
		return nil, false
	}
	return extrapolate(xs, ys, improvement), true
}

// improvement returns by how much curves typically change on their way, in
// units of a scale: the root of the mean square between the first and the best
// loss.
func improvement(curves []*Curve, scale float64) float64 {
	sum, n := 0.0, 0.0
	for _, curve := range curves {
		d := curve.losses[0]/scale - curve.best[curve.Len()-1]/scale
		if !math.IsInf(d, 0) && !math.IsNaN(d) {
			sum += d * d
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return math.Sqrt(sum / n)
}

// largest returns the largest finite size of the curves' losses.
func largest(curves []*Curve) float64 {
	size := 0.0
	for _, curve := range curves {
		for _, loss := range curve.losses {
			if a := math.Abs(loss); a > size && !math.IsInf(a, 0) {
				size = a
			}
		}
	}
	return size
}
