// SPDX-License-Identifier: Apache-2.0

package stopping

import (
	"fmt"
	"math"
)

// WilcoxonConfig configures a rule for trials that are evaluated on a series of
// instances or folds, each a step, with the average over all of them as their
// objective. A trial stops when Wilcoxon's signed-rank test, over the steps
// that it shares with the complete trial of the best average, says that it is
// worse, and its average over them is worse too. The values of different steps
// need not be comparable.
type WilcoxonConfig struct {
	// PThreshold is the p-value below which a trial stops, from 0 to 1. The
	// default, 0.1, is Optuna's. The lower it is, the later trials stop.
	PThreshold float64
	// StartupSteps is how many shared steps the rule needs, at least 0. The
	// default, 2, is Optuna's.
	StartupSteps int
}

// DefaultWilcoxonConfig returns the defaults.
func DefaultWilcoxonConfig() WilcoxonConfig { return WilcoxonConfig{PThreshold: 0.1, StartupSteps: 2} }

type wilcoxon struct{ WilcoxonConfig }

// NewWilcoxon returns the rule of the signed-rank test.
func NewWilcoxon(w WilcoxonConfig) (Rule, error) {
	if !(w.PThreshold >= 0 && w.PThreshold <= 1) {
		return nil, fmt.Errorf("setting p_threshold is %v: want a number from 0 to 1", w.PThreshold)
	}
	if err := atLeast("n_startup_steps", w.StartupSteps, 0); err != nil {
		return nil, err
	}
	return wilcoxon{w}, nil
}

func (w wilcoxon) Judge(c *Curves, trial int) Verdict {
	curve, best := c.running(trial), bestOnAverage(c.complete())
	if curve == nil || best == nil {
		return Verdict{}
	}
	differences := differences(curve, best)
	if len(differences) < max(w.StartupSteps, 1) {
		return Verdict{}
	}
	average := 0.0
	for _, d := range differences {
		average += d / float64(len(differences))
	}
	if p := signedRank(differences); p < w.PThreshold && average > 0 {
		return Verdict{true, fmt.Sprintf("it is worse than the best trial, %d, over the %d steps that they share: the signed-rank test has p = %s, less than %s",
			best.Trial, len(differences), format(p), format(w.PThreshold))}
	}
	return Verdict{}
}

// bestOnAverage returns the curve with the best average, of equals that of the
// first trial, or nil.
func bestOnAverage(curves []*Curve) *Curve {
	var best *Curve
	for _, curve := range curves {
		if best == nil {
			best = curve
			continue
		}
		loss, least := curve.mean[curve.Len()-1], best.mean[best.Len()-1]
		if loss < least || loss == least && curve.Trial < best.Trial {
			best = curve
		}
	}
	return best
}

// differences returns by how much a curve is worse than another, at each step
// that they share.
func differences(curve, other *Curve) []float64 {
	var list []float64
	i := 0
	for k, step := range curve.steps {
		for i < other.Len() && other.steps[i] < step {
			i++
		}
		if i < other.Len() && other.steps[i] == step {
			list = append(list, difference(curve.losses[k], other.losses[i]))
		}
	}
	return list
}

// difference returns a − b, 0 where they are the same infinity.
func difference(a, b float64) float64 {
	if a == b {
		return 0
	}
	return math.Max(math.Min(a-b, math.MaxFloat64), -math.MaxFloat64)
}
