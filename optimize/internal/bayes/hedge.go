// SPDX-License-Identifier: Apache-2.0

package bayes

import "math"

// Choice is the rule that chose a point, and what came of that.
type Choice struct {
	Rule Rule
	Loss float64
}

// Hedge chooses a rule with a probability that grows exponentially with its gain,
// as Brochu, Hoffman and de Freitas do ("Portfolio allocation for Bayesian
// optimization", 2011), by a number u from 0 to 1. The gain is how far the mean
// rank of the losses of its points is from the middle, from −1 for the worst to
// 1, times how many there are up to ten.
func Hedge(past []Choice, u float64) Rule {
	hedged := [...]Rule{ExpectedImprovement, ConfidenceBound, ImprovementProbability}
	var gains [len(hedged)]float64
	total := 0.0
	for i, r := range hedged {
		gains[i] = math.Exp(gain(past, r))
		total += gains[i]
	}
	u *= total
	for i, r := range hedged {
		if u -= gains[i]; u < 0 {
			return r
		}
	}
	return hedged[0]
}

func gain(past []Choice, r Rule) float64 {
	better, compared, own := 0.0, 0.0, 0.0
	for _, o := range past {
		if o.Rule != r {
			continue
		}
		own++
		for _, other := range past {
			compared++
			switch {
			case o.Loss < other.Loss:
				better++
			case o.Loss == other.Loss:
				better += 0.5
			}
		}
	}
	if compared == 0 {
		return 0
	}
	return (2*better/compared - 1) * math.Min(own, 10)
}
