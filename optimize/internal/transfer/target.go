// SPDX-License-Identifier: Apache-2.0

package transfer

import "math"

// Result is one of a search.
type Result struct {
	Point []float64
	Loss  float64 // +Inf where it failed
}

// Target is what a search has found so far, and what earlier ones predict for it.
type Target struct {
	models      *Models
	rows        [][]float64 // features of the results
	losses      []float64
	predictions [][]float64 // by result and model
	pending     []prediction
	order       [][]float64 // by model and result: concordant less discordant pairs with others
}

// prediction is a row of features and what each model predicts there.
type prediction struct {
	row, of []float64
}

// NewTarget returns a search with some results, and points that are pending.
func (m *Models) NewTarget(results []Result, pending [][]float64) *Target {
	g := &Target{models: m}
	for _, r := range results {
		row := m.features.Row(r.Point)
		g.rows, g.losses = append(g.rows, row), append(g.losses, r.Loss)
		g.predictions = append(g.predictions, m.predict(row))
	}
	for _, point := range pending {
		row := m.features.Row(point)
		g.pending = append(g.pending, prediction{row, m.predict(row)})
	}
	g.compare()
	return g
}

// compare counts for each model and result the pairs with another result that
// the model orders as they are, less those that it does not.
func (g *Target) compare() {
	g.order = make([][]float64, len(g.models.models))
	for m := range g.order {
		g.order[m] = make([]float64, len(g.losses))
	}
	for i := range g.losses {
		for j := range i {
			if g.losses[i] == g.losses[j] {
				continue
			}
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
func (g *Target) correlation(m, but int) float64 {
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
func (g *Target) weights(but int) []float64 {
	n := float64(len(g.losses))
	weights := make([]float64, len(g.models.models))
	top := math.Inf(-1)
	for m := range weights {
		weights[m] = n*g.correlation(m, but) + math.Log(g.models.models[m].prior)
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

// agreement returns Kendall's correlation of each result with the models'
// leave-one-out predictions.
func (g *Target) agreement() float64 {
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

// Weights returns the part of each model in what all predict, from 0 to 1.
func (g *Target) Weights() []float64 { return g.weights(-1) }

// Agreement returns how well a model orders the results: Kendall's rank
// correlation, from -1 to 1, 0 for fewer than two.
func (g *Target) Agreement(model int) float64 { return g.correlation(model, -1) }

// Share returns the part of the suggestions, from 0 to 1, that earlier searches
// deserve. After half many results it is at most a half. Before any, they are
// trusted as if they were better than chance by optimism standard deviations.
func (g *Target) Share(half, optimism float64) float64 {
	n := float64(len(g.losses))
	fading := 1 / (1 + n/5)
	z := significance(g.agreement(), len(g.losses)) + optimism*fading - doubt*(1-fading)
	late := n / half
	return math.Max(2*below(z)-1, 0) / (1 + late*late)
}

// doubt is how many standard deviations earlier searches have to be better than
// chance to be asked in the long run.
const doubt = 1

// significance returns a Kendall correlation of n pairs in standard deviations
// of what chance makes of it.
func significance(correlation float64, n int) float64 {
	if n < 2 {
		return 0
	}
	k := float64(n)
	return correlation / math.Sqrt(2*(2*k+5)/(9*k*(k-1)))
}

// below is the distribution function of the standard normal distribution.
func below(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }

// worstScore is a normal score that no trial is as bad as.
const worstScore = 3

// Gain returns a function of a point: by how much it lowers the mean over models,
// by their weights, of the best prediction at the points so far.
func (g *Target) Gain() func(point []float64) float64 {
	weights := g.Weights()
	best := make([]float64, len(weights))
	for m := range best {
		best[m] = worstScore
		for _, at := range g.predictions {
			best[m] = math.Min(best[m], at[m])
		}
		for _, at := range g.pending {
			best[m] = math.Min(best[m], at.of[m])
		}
	}
	return func(point []float64) float64 {
		gain := 0.0
		for m, v := range g.models.predict(g.models.features.Row(point)) {
			gain += weights[m] * math.Max(best[m]-v, 0)
		}
		return gain
	}
}
