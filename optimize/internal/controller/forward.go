// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// tape is what one pass through the network leaves for the way back.
type tape struct {
	layers []layer
	input  []float64 // of the step after the last
}

// layer is the part of the tape that belongs to one layer.
type layer struct {
	choose, anchor step      // the two steps of the LSTM
	operation      int       // what was chosen
	logits, chance []float64 // of each operation, squashed
	key            []float64 // W₁ h of the anchor
	query          []float64 // W₂ h of the anchor
	links          []link    // from each earlier layer
	linked         float64   // how many of them there are
}

// link is the decision on one skip connection.
type link struct {
	mixed  []float64 // tanh(W₁ h_k + W₂ h_l)
	logit  float64   // s, squashed
	chance [2]float64
	on     int
}

// step is one step of the LSTM.
type step struct {
	input, before, memory []float64 // x, h and c that it began with
	gates                 []float64 // i, f, o, g after their nonlinearities
	next, squashed, out   []float64 // c, tanh(c) and h that it ended with
}

func newTape(c Config) tape {
	t := tape{layers: make([]layer, c.Layers), input: make([]float64, c.Hidden)}
	vector := func() []float64 { return make([]float64, c.Hidden) }
	newStep := func() step {
		return step{input: vector(), gates: make([]float64, 4*c.Hidden), next: vector(), squashed: vector(), out: vector()}
	}
	previous := step{next: vector(), out: vector()} // zeros
	for i := range t.layers {
		l := layer{choose: newStep(), anchor: newStep(), key: vector(), query: vector(),
			logits: make([]float64, c.Operations), chance: make([]float64, c.Operations), links: make([]link, i)}
		l.choose.before, l.choose.memory = previous.out, previous.next
		l.anchor.before, l.anchor.memory = l.choose.out, l.choose.next
		for k := range l.links {
			l.links[k].mixed = vector()
		}
		previous, t.layers[i] = l.anchor, l
	}
	return t
}

// forward passes through the network. At each decision it asks which of the
// choices to take; choose must not keep their probabilities.
func (c *Controller) forward(choose func(i int, probabilities []float64) int) {
	decision := 0
	ask := func(probabilities []float64) int {
		d := choose(decision, probabilities)
		decision++
		return d
	}
	input := c.start
	for i := range c.tape.layers {
		l := &c.tape.layers[i]
		copy(l.choose.input, input)
		c.advance(&l.choose)
		c.chances(l)
		l.operation = ask(l.chance)
		copy(l.anchor.input, row(c.embedding, l.operation, c.Hidden))
		c.advance(&l.anchor)
		times(l.key, l.anchor.out, c.key)
		times(l.query, l.anchor.out, c.query)
		if i == 0 {
			continue // the second layer begins as the first
		}
		input = c.tape.input
		c.connect(i, ask)
	}
}

// advance makes a step of the LSTM.
func (c *Controller) advance(s *step) {
	n := c.Hidden
	times(s.gates, s.input, c.lstm[:4*n*n])
	addTimes(s.gates, s.before, c.lstm[4*n*n:])
	for j := range n {
		i, f, o := sigmoid(s.gates[j]), sigmoid(s.gates[n+j]), sigmoid(s.gates[2*n+j])
		g := tanh(s.gates[3*n+j])
		s.gates[j], s.gates[n+j], s.gates[2*n+j], s.gates[3*n+j] = i, f, o, g
		s.next[j] = i*g + f*s.memory[j]
		s.squashed[j] = tanh(s.next[j])
		s.out[j] = o * s.squashed[j]
	}
}

// chances sets how likely each operation of a layer is.
func (c *Controller) chances(l *layer) {
	times(l.logits, l.choose.out, c.softmax)
	for j, x := range l.logits {
		l.logits[j] = c.squash(x)
	}
	largest, sum := floats.Max(l.logits), 0.0
	for j, x := range l.logits {
		l.chance[j] = math.Exp(x - largest)
		sum += l.chance[j]
	}
	floats.Scale(1/sum, l.chance)
}

// connect decides the skip connections of layer i, and sets the input of the
// layer after it.
func (c *Controller) connect(i int, ask func([]float64) int) {
	l := &c.tape.layers[i]
	clear(c.tape.input)
	l.linked = 0
	for k := range l.links {
		each, from := &l.links[k], &c.tape.layers[k]
		s := 0.0
		for j, q := range l.query {
			each.mixed[j] = tanh(q + from.key[j])
			s += c.score[j] * each.mixed[j]
		}
		each.logit = c.squash(s)
		p := sigmoid(2 * each.logit)
		each.chance = [2]float64{1 - p, p}
		each.on = ask(each.chance[:])
		if each.on == 1 {
			l.linked++
			floats.Add(c.tape.input, from.anchor.out)
		}
	}
	floats.Scale(1/(1+l.linked), c.tape.input)
}

// squash bounds a logit.
func (c *Controller) squash(x float64) float64 {
	if c.Temperature > 0 {
		x /= c.Temperature
	}
	if c.Tanh > 0 {
		x = c.Tanh * tanh(x)
	}
	return x
}

// slope returns the derivative of squash where its value is y.
func (c *Controller) slope(y float64) float64 {
	d := 1.0
	if c.Tanh > 0 {
		d = c.Tanh - y*y/c.Tanh
	}
	if c.Temperature > 0 {
		d /= c.Temperature
	}
	return d
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// tanh is math.Tanh to within a rounding of 1, in a third of its time.
func tanh(x float64) float64 { return 2*sigmoid(2*x) - 1 }

// row returns row i of a matrix with rows of a width.
func row(m []float64, i, width int) []float64 { return m[i*width : (i+1)*width] }

// times sets out to xᵀ m.
func times(out, x, m []float64) {
	clear(out)
	addTimes(out, x, m)
}

// addTimes adds xᵀ m to out.
func addTimes(out, x, m []float64) {
	for i, v := range x {
		floats.AddScaled(out, v, row(m, i, len(out)))
	}
}
