// SPDX-License-Identifier: Apache-2.0

package stopping

import (
	"fmt"
	"math"
)

// PatienceConfig configures a rule that stops a trial which does not improve.
type PatienceConfig struct {
	// Patience is how many reports in a row may pass without an improvement,
	// at least 0: with the next one the trial stops.
	Patience int
	// MinDelta is by how much a value must be better than the best before to
	// be an improvement, at least 0, which is the default: then any better one
	// is.
	MinDelta float64
	// Rule, if not nil, must say stop too.
	Rule Rule
}

type patience struct{ PatienceConfig }

// NewPatience returns the rule of patience.
func NewPatience(p PatienceConfig) (Rule, error) {
	if err := atLeast("patience", p.Patience, 0); err != nil {
		return nil, err
	}
	if !(p.MinDelta >= 0) || math.IsInf(p.MinDelta, 1) {
		return nil, fmt.Errorf("setting min_delta is %v: want a finite number from 0", p.MinDelta)
	}
	return patience{p}, nil
}

func (p patience) Judge(c *Curves, trial int) Verdict {
	curve := c.running(trial)
	if curve == nil {
		return Verdict{}
	}
	best, since := math.Inf(1), -1 // the last improvement
	for i, loss := range curve.losses {
		if i == 0 || loss < best-p.MinDelta {
			best, since = loss, i
		}
	}
	waited := curve.Len() - 1 - since
	if waited <= p.Patience {
		return Verdict{}
	}
	v := Verdict{true, fmt.Sprintf("its value has not improved on %s, at step %d, by more than %s in %d reports",
		c.text(best), curve.steps[since], format(p.MinDelta), waited)}
	if p.Rule != nil {
		inner := p.Rule.Judge(c, trial)
		if !inner.Stop {
			return Verdict{}
		}
		v.Reason += ", and " + inner.Reason
	}
	return v
}
