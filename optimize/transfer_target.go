// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"math"
	"slices"

	"diwan.dev/diwan/optimize/internal/gp"
)

// target is what a search has found so far, and what earlier ones say of it.
type target struct {
	*transfer
	h           *History
	rows        [][]float64 // features of the results
	losses      []float64
	predictions [][]float64 // by result and model
	pending     []pendingPoint
	order       [][]float64 // by model and result: concordant less discordant pairs with others
	pairs       float64
}

type pendingPoint struct {
	row, predictions []float64
}

// remembered is how many trials are compared and modelled, the latest, and
// known results where there are fewer.
const remembered = 100

func (t *transfer) newTarget(h *History) *target {
	g := &target{transfer: t, h: h}
	worst := math.Inf(-1)
	recent := h.trials[max(len(h.trials)-remembered, 0):]
	known := h.known[max(len(h.known)+len(recent)-remembered, 0):]
	for _, trial := range slices.Concat(known, recent) {
		switch trial.State {
		case Pending:
			g.pending = append(g.pending, pendingPoint{t.features.row(t.space.Unit(trial.Point)), t.predict(trial.Point)})
			continue
		case Lost, Stopped:
			continue
		}
		loss := math.Inf(1)
		if trial.Complete() && trial.Feasible() {
			loss = h.Direction().loss(trial.Value())
			worst = math.Max(worst, loss)
		}
		g.rows = append(g.rows, t.features.row(t.space.Unit(trial.Point)))
		g.losses = append(g.losses, loss)
		g.predictions = append(g.predictions, t.predict(trial.Point))
	}
	g.compare()
	return g
}

// compare counts for each model and result the pairs with another result that
// the model orders as they are, less those that it does not.
func (g *target) compare() {
	g.order = make([][]float64, len(g.models))
	for m := range g.order {
		g.order[m] = make([]float64, len(g.losses))
	}
	for i := range g.losses {
		for j := range i {
			if g.losses[i] == g.losses[j] {
				continue
			}
			g.pairs++
			for m := range g.order {
				d := 0.0
				switch a, b := g.predictions[i][m], g.predictions[j][m]; {
				case a < b:
					d = 1
				case a > b:
					d = -1
				}
				if g.losses[i] > g.losses[j] {
					d = -d
				}
				g.order[m][i] += d
				g.order[m][j] += d
			}
		}
	}
}

// correlation returns Kendall's for a model and the results but for one.
func (g *target) correlation(m, but int) float64 {
	sum := 0.0
	for _, d := range g.order[m] {
		sum += d / 2 // each pair is counted at both
	}
	n := float64(len(g.losses))
	if but >= 0 {
		sum -= g.order[m][but]
		n--
	}
	if n < 2 {
		return 0
	}
	return sum / (n * (n - 1) / 2)
}

// weights returns the part of each model in what all predict, by the results
// but for one: as if each result told its order right with a likelihood that
// grows with the correlation.
func (g *target) weights(but int) []float64 {
	n := float64(len(g.losses))
	weights := make([]float64, len(g.models))
	top := math.Inf(-1)
	for m := range weights {
		weights[m] = n*g.correlation(m, but) + math.Log(g.models[m].prior)
		top = math.Max(top, weights[m])
	}
	sum := 0.0
	for m, w := range weights {
		weights[m] = math.Exp(w - top)
		sum += weights[m]
	}
	for m := range weights {
		weights[m] /= sum
	}
	return weights
}

// agreement returns Kendall's correlation of each result with what the models
// say of it, weighted by the other results: what they say of one that is new.
func (g *target) agreement() float64 {
	n := len(g.losses)
	if n < 2 {
		return 0
	}
	said := make([]float64, n)
	for i := range said {
		for m, w := range g.weights(i) {
			said[i] += w * g.predictions[i][m]
		}
	}
	sum := 0.0
	for i := range said {
		for j := range i {
			if d := (said[i] - said[j]) * (g.losses[i] - g.losses[j]); d > 0 {
				sum++
			} else if d < 0 {
				sum--
			}
		}
	}
	return sum / float64(n*(n-1)/2)
}

// stacked predicts the losses of a search, in normal scores: a straight line
// through what the earlier ones say, and a process for the rest.
type stacked struct {
	*target
	weights   []float64
	base      float64
	slope     float64
	rest      *gp.Model
	deviation float64 // of the rest
	best      float64 // mean at the best result
}

func (g *target) stack() *stacked {
	s := &stacked{target: g, weights: g.weights(-1), slope: 1, deviation: 1}
	if len(g.losses) >= 3 {
		s.learn()
	}
	return s
}

// learn fits line and process to the results.
func (s *stacked) learn() {
	scores := normalScores(s.losses)
	said := make([]float64, len(scores))
	var meanSaid, mean float64
	for i := range said {
		for m, w := range s.weights {
			said[i] += w * s.predictions[i][m]
		}
		meanSaid += said[i] / float64(len(said))
		mean += scores[i] / float64(len(said))
	}
	product, square := 0.0, 1.0 // a result's worth of none keeps the slope small
	for i := range said {
		product += (said[i] - meanSaid) * (scores[i] - mean)
		square += (said[i] - meanSaid) * (said[i] - meanSaid)
	}
	s.slope = math.Max(product/square, 0)
	s.base = mean - s.slope*meanSaid
	rest, squares := make([]float64, len(scores)), 0.0
	for i := range rest {
		rest[i] = scores[i] - s.base - s.slope*said[i]
		squares += rest[i] * rest[i]
	}
	s.deviation = math.Max(math.Sqrt(squares/float64(len(rest))), 1e-3)
	for i := range rest {
		rest[i] /= s.deviation
	}
	s.rest = s.features.fit(s.rows, rest)
	s.best = math.Inf(1)
	for _, row := range s.rows {
		mean, _ := s.at(row)
		s.best = math.Min(s.best, mean)
	}
	for _, p := range s.pending {
		s.rest = s.rest.Given(p.row, s.rest.Mean(p.row))
	}
}

// at returns mean and deviation at a row of features.
func (s *stacked) at(row []float64) (mean, deviation float64) {
	square := 0.0
	for m, w := range s.weights {
		if w < 1e-3 {
			continue
		}
		a, variance := s.models[m].predict(row)
		mean += w * a
		square += w * (a*a + variance)
	}
	variance := math.Max(square-mean*mean, 0) * s.slope * s.slope
	mean = s.base + s.slope*mean
	if s.rest != nil {
		a, v := s.rest.Predict(row)
		mean += s.deviation * a
		variance += s.deviation * s.deviation * v
	}
	return mean, math.Sqrt(variance)
}
