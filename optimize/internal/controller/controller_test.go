// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"math"
	"testing"
)

// numbers returns a fixed sequence of numbers between 0 and 1: a linear
// congruential generator with Knuth's constants.
func numbers(seed uint64) func() float64 {
	return func() float64 {
		seed = seed*6364136223846793005 + 1442695040888963407
		return (float64(seed>>12) + 0.5) / (1 << 52)
	}
}

// TestGradient compares the gradient with central differences of the loss.
func TestGradient(t *testing.T) {
	t.Parallel()
	cases := map[string]Config{
		"Katib":    {Layers: 4, Operations: 5, Hidden: 6, Temperature: 5, Tanh: 2.25, EntropyWeight: 1e-5, SkipTarget: 0.4, SkipWeight: 0.8},
		"Entropy":  {Layers: 3, Operations: 3, Hidden: 4, Temperature: 2, Tanh: 1.5, EntropyWeight: 2, SkipTarget: 0.3, SkipWeight: 0},
		"Unbound":  {Layers: 3, Operations: 4, Hidden: 5, EntropyWeight: 0.1, SkipTarget: 0.7, SkipWeight: 3},
		"OneLayer": {Layers: 1, Operations: 4, Hidden: 3, Temperature: 5, Tanh: 2.25, EntropyWeight: 0.5, SkipTarget: 0.4, SkipWeight: 0.8},
		"OneOp":    {Layers: 5, Operations: 1, Hidden: 3, Temperature: 1, Tanh: 2.25, EntropyWeight: 0.5, SkipTarget: 0.4, SkipWeight: 0.8},
	}
	for name, config := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			random := numbers(7)
			c := New(config, random)
			for i := range c.all {
				c.all[i] *= 8 // away from the origin, where much is linear
			}
			decisions := c.Sample(random)
			for _, advantage := range []float64{0, 1.5, -2} {
				gradient := newWeights(config)
				c.Loss(decisions, advantage)
				c.backward(advantage, gradient)
				for i, v := range c.all {
					const h = 1e-5
					c.all[i] = v + h
					up := c.Loss(decisions, advantage)
					c.all[i] = v - h
					down := c.Loss(decisions, advantage)
					c.all[i] = v
					if want := (up - down) / (2 * h); math.Abs(want-gradient.all[i]) > 1e-7*(1+math.Abs(want)) {
						t.Fatalf("advantage %v, weight %d: gradient %v, differences say %v", advantage, i, gradient.all[i], want)
					}
				}
			}
		})
	}
}

func katib(layers, operations int) Config {
	return Config{Layers: layers, Operations: operations, Hidden: 8, Temperature: 5, Tanh: 2.25, EntropyWeight: 1e-5,
		SkipTarget: 0.4, SkipWeight: 0.8, LearningRate: 0.01}
}

// all calls visit with every architecture.
func all(c Config, visit func(decisions []int)) {
	decisions := make([]int, Decisions(c.Layers))
	choices := make([]int, 0, len(decisions))
	for l := range c.Layers {
		choices = append(choices, c.Operations)
		for range l {
			choices = append(choices, 2)
		}
	}
	for i := 0; i < len(decisions); {
		visit(decisions)
		for i = 0; i < len(decisions); i++ {
			if decisions[i]++; decisions[i] < choices[i] {
				break
			}
			decisions[i] = 0
		}
	}
}

// TestProbabilities checks that architectures are drawn as often as they are
// said to be likely, and that these sum to 1.
func TestProbabilities(t *testing.T) {
	t.Parallel()
	c := New(katib(3, 2), numbers(3))
	for i := range c.all {
		c.all[i] *= 20 // far from uniform
	}
	const draws = 40000
	drawn := map[string]float64{}
	random := numbers(4)
	for range draws {
		drawn[fmt.Sprint(c.Sample(random))]++
	}
	sum := 0.0
	all(c.Config, func(decisions []int) {
		p := math.Exp(c.LogProbability(decisions))
		sum += p
		if got, deviation := drawn[fmt.Sprint(decisions)]/draws, math.Sqrt(p*(1-p)/draws); math.Abs(got-p) > 5*deviation {
			t.Errorf("architecture %v: drawn %v of the time, probability %v", decisions, got, p)
		}
	})
	if math.Abs(sum-1) > 1e-9 {
		t.Errorf("probabilities sum to %v", sum)
	}
}

// TestLearn checks that what is rewarded becomes likely, and what is punished
// unlikely but not impossible.
func TestLearn(t *testing.T) {
	t.Parallel()
	c := New(katib(3, 4), numbers(3))
	good, bad := []int{2, 1, 1, 3, 0, 1}, []int{0, 2, 0, 1, 1, 0}
	episodes := []Episode{{good, 1, c.LogProbability(good)}, {bad, -1, c.LogProbability(bad)}}
	uniform := 3*math.Log(1.0/4) + 3*math.Log(1.0/2)
	c.Learn(episodes, 300, numbers(5))
	if p := c.LogProbability(good); p < uniform+3 {
		t.Errorf("log-probability of the good one is %v, %v where all are equal", p, uniform)
	}
	if p := c.LogProbability(bad); p > uniform-3 || p < uniform-40 {
		t.Errorf("log-probability of the bad one is %v, %v where all are equal", p, uniform)
	}
}

// TestSkipTarget checks that without rewards skip connections become as likely
// as they should be.
func TestSkipTarget(t *testing.T) {
	t.Parallel()
	config := katib(4, 2)
	config.SkipTarget = 0.2
	c := New(config, numbers(3))
	random := numbers(4)
	for range 2000 {
		c.Learn([]Episode{{Decisions: c.Sample(random)}}, 1, random)
	}
	skips := 0.0
	for range 1000 {
		d := c.Sample(random)
		skips += float64(d[2] + d[4] + d[5] + d[7] + d[8] + d[9])
	}
	if rate := skips / 6000; math.Abs(rate-0.2) > 0.03 {
		t.Errorf("%v of the skip connections are made, want 0.2", rate)
	}
}

// TestAdam compares steps with those of the paper's algorithm by hand: on
// gradients 1 and then -2 the moments are 0.1, 0.001 and then -0.11, 0.004999.
func TestAdam(t *testing.T) {
	t.Parallel()
	a, x := newAdam(1), []float64{0}
	a.step(x, []float64{1}, 0.1)
	if math.Abs(x[0]+0.1) > 1e-7 {
		t.Errorf("after one step x is %v, want -0.1", x[0])
	}
	a.step(x, []float64{-2}, 0.1)
	first, second := -0.11/(1-0.81), 0.004999/(1-0.998001)
	if want := -0.1 - 0.1*first/math.Sqrt(second); math.Abs(x[0]-want) > 1e-7 {
		t.Errorf("after two steps x is %v, want %v", x[0], want)
	}
}

func TestClone(t *testing.T) {
	t.Parallel()
	c := New(katib(3, 3), numbers(3))
	decisions := c.Sample(numbers(4))
	episodes := []Episode{{decisions, 1, c.LogProbability(decisions)}}
	c.Learn(episodes, 3, numbers(5))
	before, clone := c.LogProbability(decisions), c.Clone()
	clone.Learn(episodes, 3, numbers(6))
	if got := c.LogProbability(decisions); got != before {
		t.Errorf("what the clone learnt changed the log-probability from %v to %v", before, got)
	}
	c.Learn(episodes, 3, numbers(6))
	if got, want := c.LogProbability(decisions), clone.LogProbability(decisions); got != want {
		t.Errorf("having learnt the same, the log-probabilities are %v and %v", got, want)
	}
}
