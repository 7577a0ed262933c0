// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// Episode is an architecture that was tried.
type Episode struct {
	Decisions []int
	// Advantage is by how much it is better than expected.
	Advantage float64
	// Before is the logarithm of how likely the policy made it that it is
	// learned from, such as the one that suggested it.
	Before float64
}

// stride is how far a weight moves at most in a step that learns from several
// lessons.
const stride = 0.005

// Learn has so many lessons, each on an episode, of which uniform, with numbers
// between 0 and 1, draws one after the other without replacement until each was
// drawn. A lesson is a step of REINFORCE with Adam at the learning rate. Where
// that is small, several lessons make one step that is as long as all of theirs
// together: it goes in the direction of their mean, in which less of it is
// chance.
//
// The episodes come from earlier policies. One with an advantage is learned from
// as it is, and one without with the weight min(1, π/π before): what has become
// unlikely need not become more so (tapered off-policy REINFORCE).
func (c *Controller) Learn(episodes []Episode, lessons int, uniform func() float64) {
	gradient := newWeights(c.Config)
	deck := deck{size: len(episodes), uniform: uniform}
	for left := lessons; left > 0; {
		batch := max(min(left, int(stride/c.LearningRate)), 1)
		left -= batch
		rate := float64(batch) * c.LearningRate
		batch = min(batch, len(episodes))
		clear(gradient.all)
		for range batch {
			c.lesson(&episodes[deck.draw()], gradient)
		}
		floats.Scale(1/float64(batch), gradient.all)
		c.adam.step(c.all, gradient.all, rate)
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

// deck draws numbers below its size at random, each once before any twice.
type deck struct {
	size    int
	uniform func() float64
	left    []int
}

func (d *deck) draw() int {
	if len(d.left) == 0 {
		for i := range d.size {
			d.left = append(d.left, i)
		}
	}
	i, last := min(int(d.uniform()*float64(len(d.left))), len(d.left)-1), len(d.left)-1
	d.left[i], d.left[last] = d.left[last], d.left[i]
	drawn := d.left[last]
	d.left = d.left[:last]
	return drawn
}
