// SPDX-License-Identifier: Apache-2.0

// Package controller is the policy of ENAS: a recurrent network that writes
// down an architecture decision by decision, and learns from the rewards of
// those that were tried (Pham, Guan, Zoph, Le and Dean, "Efficient neural
// architecture search via parameter sharing", 2018, §2.3, the macro space).
//
// # The model
//
// An architecture of n layers is a list of n(n+1)/2 decisions. Layer l, from 0,
// has 1+l of them: its operation, a number below Operations, and for each
// earlier layer k whether there is a skip connection from it, 0 or 1.
//
// An LSTM makes two steps a layer. After the first a softmax over its output
// chooses the operation, whose embedding is the input of the second. The output
// h of the second is the layer's anchor: layer k is connected to layer l > k
// with probability
//
//	σ(2 s), s = vᵀ tanh(W₁ h_k + W₂ h_l),
//
// and the mean of the anchors that are connected, over one more than their
// number, is the input of the next layer. Logits x are squashed to
// Tanh · tanh(x / Temperature) before use, so that no choice ever becomes
// certain (Bello et al., "Neural combinatorial optimization", 2016).
package controller

import "math"

// Config says what the controller decides and how it learns.
type Config struct {
	// Layers and Operations are the size of the space, both at least 1.
	Layers, Operations int
	// Hidden is the number of units of the LSTM, at least 1.
	Hidden int
	// Temperature divides logits; 0 does not.
	Temperature float64
	// Tanh bounds logits by Tanh · tanh; 0 does not.
	Tanh float64
	// EntropyWeight is the weight of the entropy of the choices in the reward.
	EntropyWeight float64
	// SkipTarget is how likely a skip connection is to be, above 0 and below 1,
	// and SkipWeight is the weight of the divergence from it in the loss.
	SkipTarget, SkipWeight float64
	// LearningRate is the step of Adam.
	LearningRate float64
}

// Controller is a policy. It is not safe for several goroutines at once.
type Controller struct {
	Config
	weights
	adam adam
	tape tape
}

// weights are the parameters of the network: matrices in rows, as slices of
// one list. A row of a matrix belongs to one input.
type weights struct {
	all        []float64
	lstm       []float64 // 2·Hidden × 4·Hidden: input and output before, to the gates i, f, o, g
	start      []float64 // Hidden: the first input
	embedding  []float64 // Operations × Hidden
	softmax    []float64 // Hidden × Operations
	key, query []float64 // Hidden × Hidden: W₁ and W₂
	score      []float64 // Hidden: v
}

// New returns a controller whose weights are drawn from ±0.1, as in the paper,
// by numbers that uniform returns between 0 and 1.
func New(c Config, uniform func() float64) *Controller {
	made := &Controller{Config: c, weights: newWeights(c), tape: newTape(c)}
	for i := range made.all {
		made.all[i] = 0.2*uniform() - 0.1
	}
	made.adam = newAdam(len(made.all))
	return made
}

func newWeights(c Config) weights {
	h, o := c.Hidden, c.Operations
	var w weights
	parts := []struct {
		into *[]float64
		size int
	}{
		{&w.lstm, 8 * h * h}, {&w.start, h}, {&w.embedding, o * h}, {&w.softmax, h * o},
		{&w.key, h * h}, {&w.query, h * h}, {&w.score, h},
	}
	total := 0
	for _, p := range parts {
		total += p.size
	}
	w.all = make([]float64, total)
	rest := w.all
	for _, p := range parts {
		*p.into, rest = rest[:p.size:p.size], rest[p.size:]
	}
	return w
}

// Clone returns a controller that learns on by itself.
func (c *Controller) Clone() *Controller {
	made := &Controller{Config: c.Config, weights: newWeights(c.Config), adam: c.adam.clone(), tape: newTape(c.Config)}
	copy(made.all, c.all)
	return made
}

// Decisions returns how many decisions an architecture of so many layers is.
func Decisions(layers int) int { return layers * (layers + 1) / 2 }

// Sample draws an architecture by numbers that uniform returns between 0 and 1.
func (c *Controller) Sample(uniform func() float64) []int {
	decisions := make([]int, 0, Decisions(c.Layers))
	c.forward(func(_ int, probabilities []float64) int {
		d := draw(probabilities, uniform())
		decisions = append(decisions, d)
		return d
	})
	return decisions
}

// draw returns the choice below which lies the part u of the probabilities.
func draw(probabilities []float64, u float64) int {
	for i, p := range probabilities[:len(probabilities)-1] {
		if u -= p; u < 0 {
			return i
		}
	}
	return len(probabilities) - 1
}

// LogProbability returns the logarithm of how likely an architecture is.
func (c *Controller) LogProbability(decisions []int) float64 {
	sum := 0.0
	c.forward(func(i int, probabilities []float64) int {
		sum += math.Log(probabilities[decisions[i]])
		return decisions[i]
	})
	return sum
}
