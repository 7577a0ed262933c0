// SPDX-License-Identifier: Apache-2.0

package stopping

import (
	"fmt"
	"math"
)

// HyperbandConfig configures Hyperband as a stopping rule (Li et al.,
// "Hyperband: a novel bandit-based approach to hyperparameter optimization",
// 2018): each trial belongs to one of several brackets, and each bracket s is
// successive halving of its own (see [HalvingConfig]) without the first s
// rungs. Trials go to brackets by their number, as many to each as Hyperband
// starts there.
type HyperbandConfig struct {
	// MinResource is the step of the first rung of bracket 0, at least 1,
	// which is the default.
	MinResource int
	// MaxResource is the step at which trials end, at least MinResource. 0, the
	// default, is auto: the last step of the longest complete trial; until a
	// trial is complete, none is stopped.
	MaxResource int
	// Factor is that of [HalvingConfig], at least 2. The default, 3, is
	// Optuna's and that of the paper.
	Factor int
}

// DefaultHyperbandConfig returns the defaults.
func DefaultHyperbandConfig() HyperbandConfig { return HyperbandConfig{MinResource: 1, Factor: 3} }

type hyperband struct{ HyperbandConfig }

// NewHyperband returns the rule of Hyperband.
func NewHyperband(h HyperbandConfig) (Rule, error) {
	if err := atLeast("min_resource", h.MinResource, 1); err != nil {
		return nil, err
	}
	if err := atLeast("reduction_factor", h.Factor, 2); err != nil {
		return nil, err
	}
	if h.MaxResource != 0 && h.MaxResource < h.MinResource {
		return nil, fmt.Errorf("setting max_resource is %d: want auto or at least min_resource, %d", h.MaxResource, h.MinResource)
	}
	return hyperband{h}, nil
}

func (h hyperband) Judge(c *Curves, trial int) Verdict {
	most := h.MaxResource
	if most == 0 {
		longest, ok := c.horizon()
		if !ok {
			return Verdict{}
		}
		most = longest
	}
	shares := h.shares(most)
	bracket := bracketOf(trial, shares)
	r := rungs{first: float64(h.MinResource), factor: float64(h.Factor), skipped: bracket, end: most}
	v := judgeRungs(c, trial, r, func(other int) bool { return bracketOf(other, shares) == bracket })
	if v.Stop && len(shares) > 1 {
		v.Reason += fmt.Sprintf(" in bracket %d", bracket)
	}
	return v
}

// shares returns how many trials each bracket has of a round, by the number of
// rungs that it leaves out: with s+1 rungs ⌈(smax+1)/(s+1)·factor^s⌉, as in the
// paper's Algorithm 1.
func (h hyperband) shares(most int) []int {
	ratio, factor := float64(max(most, 1))/float64(h.MinResource), float64(h.Factor)
	sMax := 0
	for math.Pow(factor, float64(sMax+1)) <= ratio*(1+1e-12) {
		sMax++
	}
	shares := make([]int, sMax+1)
	for skipped := range shares {
		s := sMax - skipped
		shares[skipped] = int(math.Ceil(float64(sMax+1) / float64(s+1) * math.Pow(factor, float64(s)) * (1 - 1e-12)))
	}
	return shares
}

// bracketOf returns the bracket of a trial. The trials of a round are dealt out
// so that each bracket has its share of any run of consecutive numbers: the
// place in the round is multiplied by a number near its golden section that has
// no divisor in common with it, which makes it a permutation.
func bracketOf(trial int, shares []int) int {
	round := 0
	for _, share := range shares {
		round += share
	}
	stride := max(int(float64(round)*0.618), 1)
	for gcd(stride, round) != 1 {
		stride++
	}
	place := ((trial%round + round) % round) * stride % round
	for bracket, share := range shares {
		if place < share {
			return bracket
		}
		place -= share
	}
	panic("unreachable: the place is below the sum of the shares")
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
