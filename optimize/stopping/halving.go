// SPDX-License-Identifier: Apache-2.0

package stopping

import (
	"fmt"
	"math"
	"slices"
)

// HalvingConfig configures asynchronous successive halving as a stopping rule
// (Li et al., "A system for massively parallel hyperparameter tuning", 2020, in
// the variant that stops instead of pausing): rung k lies at the step
// MinResource·Factor^(EarlyStoppingRate+k), and a trial that reaches it
// continues if its value there is among the best fraction 1/Factor of those that
// reached it before, or the best of all while they are fewer than Factor. No
// trial waits for another, and none is stopped at the last step of the longest
// complete one.
type HalvingConfig struct {
	// MinResource is the step of the first rung where EarlyStoppingRate is 0,
	// at least 1. 0, the default, is auto: a hundredth of the longest complete
	// trial, rounded down, but at least 1; until a trial is complete, none is
	// stopped.
	MinResource int
	// Factor is the ratio between rungs, and of the trials that reach a rung to
	// those that pass it, at least 2. The default, 4, is Optuna's and that of
	// the paper.
	Factor int
	// EarlyStoppingRate is how many of the first rungs are left out, at least
	// 0, which is the default.
	EarlyStoppingRate int
}

// DefaultHalvingConfig returns the defaults.
func DefaultHalvingConfig() HalvingConfig { return HalvingConfig{Factor: 4} }

type halving struct{ HalvingConfig }

// NewHalving returns the rule of asynchronous successive halving.
func NewHalving(h HalvingConfig) (Rule, error) {
	for _, each := range []struct {
		name         string
		value, least int
	}{{"min_resource", h.MinResource, 0}, {"reduction_factor", h.Factor, 2}, {"min_early_stopping_rate", h.EarlyStoppingRate, 0}} {
		if err := atLeast(each.name, each.value, each.least); err != nil {
			return nil, err
		}
	}
	return halving{h}, nil
}

func (h halving) Judge(c *Curves, trial int) Verdict {
	longest, ended := c.horizon()
	least, end := h.MinResource, math.MaxInt
	switch {
	case ended:
		end = longest
	case least == 0:
		return Verdict{}
	}
	if least == 0 {
		least = max(longest/100, 1)
	}
	r := rungs{first: float64(least), factor: float64(h.Factor), skipped: h.EarlyStoppingRate, end: end}
	return judgeRungs(c, trial, r, func(int) bool { return true })
}

// rungs is a ladder of steps.
type rungs struct {
	first, factor float64
	skipped       int // of the first rungs
	end           int // the step before which rungs lie: nothing is saved there
}

// reached returns the step of the highest rung that a report at a step reaches
// and one at the step before did not, and false where there is none.
func (r rungs) reached(before, step int) (rung int, ok bool) {
	for k := r.skipped; ; k++ {
		// The epsilon makes up for the rounding of powers.
		at := math.Ceil(r.first * math.Pow(r.factor, float64(k)) * (1 - 1e-12))
		if at > float64(step) || at >= float64(r.end) {
			return rung, ok
		}
		if at > float64(before) {
			rung, ok = int(at), true
		}
	}
}

// judgeRungs judges a trial among those that compete with it.
func judgeRungs(c *Curves, trial int, r rungs, competes func(trial int) bool) Verdict {
	curve := c.running(trial)
	if curve == nil {
		return Verdict{}
	}
	last, before := curve.Len()-1, math.MinInt
	if last > 0 {
		before = curve.steps[last-1]
	}
	rung, ok := r.reached(before, curve.steps[last])
	if !ok {
		return Verdict{}
	}
	var others []float64
	for _, other := range c.list {
		if i, _ := slices.BinarySearch(other.steps, rung); i < other.Len() && competes(other.Trial) {
			others = append(others, other.losses[i])
		}
	}
	slices.Sort(others)
	pass := max(len(others)/int(r.factor), 1)
	if !(curve.losses[last] > others[pass-1]) {
		return Verdict{}
	}
	return Verdict{true, fmt.Sprintf("its value at step %d, %s, is %s %s, the worst of the %d that pass of the %d trials that reached the rung at step %d",
		curve.steps[last], c.text(curve.losses[last]), c.worse(), c.text(others[pass-1]), pass, len(others), rung)}
}
