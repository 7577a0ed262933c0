// SPDX-License-Identifier: Apache-2.0

package controller

import "math"

// Episode is an architecture that was tried.
type Episode struct {
	Decisions []int
	// Advantage is by how much it is better than expected.
	Advantage float64
	// Before is the logarithm of how likely the policy made it that it is
	// learnt from, such as the one that suggested it.
	Before float64
}

// Learn makes some steps of REINFORCE with Adam, each on an episode that
// numbers from uniform, between 0 and 1, choose.
//
// The episodes come from earlier policies. One with an advantage is learnt from
// as it is, and one without with the weight min(1, π/π before): what has become
// unlikely need not become more so (tapered off-policy REINFORCE).
func (c *Controller) Learn(episodes []Episode, steps int, uniform func() float64) {
	gradient := newWeights(c.Config)
	for range steps {
		e := &episodes[min(int(uniform()*float64(len(episodes))), len(episodes)-1)]
		clear(gradient.all)
		c.lesson(e, gradient)
		c.adam.step(c.all, gradient.all, c.LearningRate)
	}
}

func (c *Controller) lesson(e *Episode, gradient weights) {
	now := c.LogProbability(e.Decisions)
	advantage := e.Advantage
	if advantage < 0 {
		advantage *= math.Min(1, math.Exp(now-e.Before))
	}
	c.backward(advantage, gradient)
}
