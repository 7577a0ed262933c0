// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"math"

	"diwan.dev/diwan/optimize/internal/bayes"
	"diwan.dev/diwan/optimize/internal/random"
)

const acquisitionLabel = "acquisition"

var (
	hedged = []Acquisition{LogEI, LCB, PI}
	rules  = map[Acquisition]bayes.Rule{
		LogEI: bayes.ExpectedImprovement, LCB: bayes.ConfidenceBound, PI: bayes.ImprovementProbability,
	}
)

// rule returns the acquisition function for the next point, and the point's
// labels.
func (g *gaussian) rule(h *History, numbers *random.Stream) (bayes.Rule, map[string]string) {
	if g.config.Acquisition != Hedge {
		return rules[g.config.Acquisition], nil
	}
	chosen := hedge(h, numbers.Float())
	return rules[chosen], map[string]string{acquisitionLabel: string(chosen)}
}

// hedge chooses an acquisition function with a probability that grows
// exponentially with its gain, as Brochu, Hoffman and de Freitas do ("Portfolio
// allocation for Bayesian optimization", 2011). The gain is how far the mean
// rank of the results of its points is from the middle, from −1 for the worst to
// 1, times how many there are up to ten.
func hedge(h *History, u float64) Acquisition {
	gains := make([]float64, len(hedged))
	total := 0.0
	for i, a := range hedged {
		gains[i] = math.Exp(hedgeGain(h, a))
		total += gains[i]
	}
	u *= total
	for i, a := range hedged {
		if u -= gains[i]; u < 0 {
			return a
		}
	}
	return hedged[0]
}

func hedgeGain(h *History, a Acquisition) float64 {
	better, compared, own := 0.0, 0.0, 0.0
	for _, t := range h.trials {
		if t.State != Complete || t.Point.Labels()[acquisitionLabel] != string(a) {
			continue
		}
		own++
		for _, other := range h.trials {
			if other.State != Complete || other.Point.Labels()[acquisitionLabel] == "" {
				continue
			}
			compared++
			switch {
			case h.Direction().Better(t.Value(), other.Value()):
				better++
			case !h.Direction().Better(other.Value(), t.Value()):
				better += 0.5
			}
		}
	}
	if compared == 0 {
		return 0
	}
	return (2*better/compared - 1) * math.Min(own, 10)
}
