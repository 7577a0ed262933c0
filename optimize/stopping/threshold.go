// SPDX-License-Identifier: Apache-2.0

package stopping

import (
	"errors"
	"fmt"
	"math"
)

// ThresholdConfig configures a rule that stops a trial whose value leaves an
// interval, or is not finite.
type ThresholdConfig struct {
	// Lower and Upper bound the values, both inclusive. At least one is finite;
	// the defaults are infinite.
	Lower, Upper float64
	// WarmupSteps and IntervalSteps say when a trial is judged, as in
	// [PercentileConfig].
	WarmupSteps, IntervalSteps int
}

// DefaultThresholdConfig returns the defaults, which lack a bound.
func DefaultThresholdConfig() ThresholdConfig {
	return ThresholdConfig{Lower: math.Inf(-1), Upper: math.Inf(1), IntervalSteps: 1}
}

type threshold struct{ ThresholdConfig }

// NewThreshold returns the rule of an interval. It is a [Limiter].
func NewThreshold(t ThresholdConfig) (Rule, error) {
	switch {
	case math.IsInf(t.Lower, -1) && math.IsInf(t.Upper, 1):
		return nil, errors.New("settings lower and upper are not set: want at least one of them")
	case !(t.Lower <= t.Upper):
		return nil, fmt.Errorf("setting lower is %v: want a number up to upper, %v", t.Lower, t.Upper)
	}
	if err := atLeast("n_warmup_steps", t.WarmupSteps, 0); err != nil {
		return nil, err
	}
	if err := atLeast("interval_steps", t.IntervalSteps, 1); err != nil {
		return nil, err
	}
	return threshold{t}, nil
}

func (t threshold) Judge(c *Curves, trial int) Verdict {
	curve := c.running(trial)
	if curve == nil || !due(curve, t.WarmupSteps, t.IntervalSteps) {
		return Verdict{}
	}
	last := curve.Len() - 1
	step, value := curve.steps[last], c.value(curve.losses[last])
	switch {
	case curve.notFinite:
		return Verdict{true, fmt.Sprintf("its value at step %d is not a finite number", step)}
	case value < t.Lower:
		return Verdict{true, fmt.Sprintf("its value at step %d, %s, is below the bound %s", step, format(value), format(t.Lower))}
	case value > t.Upper:
		return Verdict{true, fmt.Sprintf("its value at step %d, %s, is above the bound %s", step, format(value), format(t.Upper))}
	}
	return Verdict{}
}

// Limits returns the bounds.
func (t threshold) Limits(*Curves) []Limit {
	var limits []Limit
	if !math.IsInf(t.Lower, -1) {
		limits = append(limits, Limit{Step: t.WarmupSteps, Value: t.Lower, Less: true})
	}
	if !math.IsInf(t.Upper, 1) {
		limits = append(limits, Limit{Step: t.WarmupSteps, Value: t.Upper})
	}
	return limits
}
