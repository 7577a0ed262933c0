// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// Loss returns what learning makes small,
//
//	-advantage · log π(decisions) - EntropyWeight · H + SkipWeight · D,
//
// H is the entropy of the choices along the way, summed, and D the divergence
// KL(p ‖ SkipTarget) of the skip connections, summed over those of a layer and
// averaged over the layers that have any (Pham et al., §3.2 and appendix).
func (c *Controller) Loss(decisions []int, advantage float64) float64 {
	loss := 0.0
	c.forward(func(i int, probabilities []float64) int {
		loss -= advantage * math.Log(probabilities[decisions[i]])
		loss -= c.EntropyWeight * entropy(probabilities)
		return decisions[i]
	})
	weight := c.skipWeight()
	for i := range c.tape.layers {
		for _, k := range c.tape.layers[i].links {
			loss += weight * divergence(k.chance[1], c.SkipTarget)
		}
	}
	return loss
}

// skipWeight returns the weight of one skip connection's divergence.
func (c *Controller) skipWeight() float64 {
	return c.SkipWeight / math.Max(1, float64(c.Layers-1))
}

func entropy(probabilities []float64) float64 {
	sum := 0.0
	for _, p := range probabilities {
		if p > 0 {
			sum -= p * math.Log(p)
		}
	}
	return sum
}

// divergence returns KL(p ‖ q) of two coins.
func divergence(p, q float64) float64 {
	sum := 0.0
	if p > 0 {
		sum += p * math.Log(p/q)
	}
	if p < 1 {
		sum += (1 - p) * math.Log((1-p)/(1-q))
	}
	return sum
}

// backward adds to g the gradient of the loss by the weights, for the pass that
// is on the tape.
func (c *Controller) backward(advantage float64, g weights) {
	n := c.Hidden
	anchors := make([][]float64, c.Layers) // by the anchors h, but for the next step
	keys := make([][]float64, c.Layers)    // by W₁ h
	for i := range anchors {
		anchors[i], keys[i] = make([]float64, n), make([]float64, n)
	}
	out, memory := make([]float64, n), make([]float64, n) // by h and c of the step at hand
	input := make([]float64, n)                           // by the input of the step after it
	query, logits := make([]float64, n), make([]float64, c.Operations)
	for i := c.Layers - 1; i >= 0; i-- {
		l := &c.tape.layers[i]
		c.disconnect(i, advantage, input, query, anchors, keys, g)
		backTimes(anchors[i], l.anchor.out, query, c.query, g.query)
		backTimes(anchors[i], l.anchor.out, keys[i], c.key, g.key)
		floats.Add(out, anchors[i])
		c.retreat(&l.anchor, out, memory, input, g)
		floats.Add(row(g.embedding, l.operation, n), input)

		c.unchoose(l, advantage, logits)
		backTimes(out, l.choose.out, logits, c.softmax, g.softmax)
		c.retreat(&l.choose, out, memory, input, g)
		if i <= 1 {
			floats.Add(g.start, input)
		}
	}
}

// disconnect goes back through the skip connections of layer i. input is the
// gradient by the input of the layer after it; query becomes that by W₂ h.
func (c *Controller) disconnect(i int, advantage float64, input, query []float64, anchors, keys [][]float64, g weights) {
	l := &c.tape.layers[i]
	clear(query)
	for k := range l.links {
		each := &l.links[k]
		if each.on == 1 && i < c.Layers-1 {
			floats.AddScaled(anchors[k], 1/(1+l.linked), input)
		}
		d := c.byLink(each, advantage) * c.slope(each.logit)
		for j, u := range each.mixed {
			g.score[j] += d * u
			by := d * c.score[j] * (1 - u*u)
			query[j] += by
			keys[k][j] += by
		}
	}
}

// byLink returns the derivative of the loss by the logit z of a skip
// connection, whose probability is p = σ(2z), so that dp/dz = 2p(1-p).
func (c *Controller) byLink(l *link, advantage float64) float64 {
	p := l.chance[1]
	d := -advantage * 2 * (float64(l.on) - p)
	logOdds := 2 * l.logit
	target := math.Log(c.SkipTarget / (1 - c.SkipTarget))
	byP := c.EntropyWeight*logOdds + c.skipWeight()*(logOdds-target)
	return d + byP*2*p*(1-p)
}

// unchoose sets the derivatives of the loss by the raw logits of a layer's
// operations.
func (c *Controller) unchoose(l *layer, advantage float64, by []float64) {
	h := entropy(l.chance)
	for j, p := range l.chance {
		d := advantage * p
		if j == l.operation {
			d -= advantage
		}
		if p > 0 {
			d += c.EntropyWeight * p * (math.Log(p) + h)
		}
		by[j] = d * c.slope(l.logits[j])
	}
}

// retreat goes back through a step of the LSTM: from the gradient by its h and
// c to those by the h and c that it began with, in place, and by its input.
func (c *Controller) retreat(s *step, out, memory, input []float64, g weights) {
	n := c.Hidden
	gates := make([]float64, 4*n)
	for j := range n {
		i, f, o, u := s.gates[j], s.gates[n+j], s.gates[2*n+j], s.gates[3*n+j]
		t := s.squashed[j]
		d := memory[j] + out[j]*o*(1-t*t)
		gates[j] = d * u * i * (1 - i)
		gates[n+j] = d * s.memory[j] * f * (1 - f)
		gates[2*n+j] = out[j] * t * o * (1 - o)
		gates[3*n+j] = d * i * (1 - u*u)
		memory[j] = d * f
	}
	clear(input)
	clear(out)
	backTimes(input, s.input, gates, c.lstm[:4*n*n], g.lstm[:4*n*n])
	backTimes(out, s.before, gates, c.lstm[4*n*n:], g.lstm[4*n*n:])
}

// backTimes goes back through y = xᵀ m: given the gradient by y it adds those
// by x and m.
func backTimes(byX, x, byY, m, byM []float64) {
	for i, v := range x {
		byX[i] += floats.Dot(row(m, i, len(byY)), byY)
		floats.AddScaled(row(byM, i, len(byY)), v, byY)
	}
}
