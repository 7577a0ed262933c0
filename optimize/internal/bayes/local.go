// SPDX-License-Identifier: Apache-2.0

package bayes

import (
	"cmp"
	"math"
	"slices"

	"diwan.dev/diwan/optimize/internal/acquisition"
	"diwan.dev/diwan/optimize/internal/gp"
	"diwan.dev/diwan/optimize/internal/lbfgs"
)

// region is the neighborhood of the best point, in the numeric dimensions that
// it has; in the others, points of the region have the same values.
type region struct {
	centre     []float64
	dimensions []int
	// basis is lower triangular: its product with local coordinates is a
	// distance from the centre. In these coordinates the best points are
	// spread evenly in all directions, as those of a valley are not in its own.
	basis     [][]float64
	oriented  bool      // whether it has entries beside the diagonal
	rows      []int     // observations there, by distance
	distances []float64 // of each of them
}

// local returns the point at which a model of the neighborhood of the best
// point expects most, within a trust region.
func (s *Search) local(d Data, centre []float64, k gp.Kernel, q Query) ([]float64, bool) {
	o := d.objective(0, 0)
	g := s.region(d, o.losses, centre, k)
	n := len(g.dimensions)
	// As many observations as lie around the best in all directions decide
	// about the size of the trust region.
	around := n + n/2 + 1
	if n == 0 || len(g.rows) <= max(around, startPerDimension*n) {
		return nil, false
	}
	radius := g.distances[around]
	if !(radius > 0) {
		return nil, false
	}
	m, ok := g.model(d, o.outputs, radius)
	if !ok {
		return nil, false
	}
	best := slices.Min(m.Smoothed())
	for _, p := range d.Pending {
		if row := g.local(p, radius); row != nil {
			m = m.Given(row, m.Mean(row))
		}
	}
	return q.Snap(g.global(g.minimize(m, best, radius, q.Random), radius))
}

// model returns the process that models the nearest observations, unless it
// sees little but noise in them. It expects a function that is nearly quadratic
// and exact to many digits.
func (g *region) model(d Data, losses []float64, radius float64) (*gp.Model, bool) {
	n := len(g.dimensions)
	rows, near := [][]float64{}, []float64{}
	for _, i := range g.rows[:min(len(g.rows), 10+modelPerDimension*n)] {
		rows, near = append(rows, g.local(d.Observations[i].Point, radius)), append(near, losses[i])
	}
	outputs := warped(near, 0).outputs
	prior := gp.DefaultPrior(n)
	prior.MinNoise, prior.Noise = 1e-12, gp.Normal{Mean: -16, Deviation: 5}
	prior.Trend = gp.Normal{Mean: 0, Deviation: 2}
	groups := make([]int, n)
	for i := range groups {
		groups[i] = i
	}
	kernel, _ := gp.Fit(prior, prior.Mode(), fitSteps, groups, rows, outputs)
	return gp.New(kernel, groups, rows, outputs), kernel.Noise <= noisy
}

const (
	// startPerDimension is how many observations for each dimension a local
	// model needs to be of use, and modelPerDimension how many it has at most
	// beside a few more.
	startPerDimension = 4
	modelPerDimension = 5
	// width is how many radii a unit of local coordinates spans, and reach how
	// many a step may go.
	width = 4
	// orientPerDimension is how many of the best observations for each
	// dimension say where the neighborhood is long, and correlated how far
	// they are believed.
	orientPerDimension = 3
	correlated         = 0.97
	// noisy is the part of the variance of the neighborhood above which noise
	// hides where it is best.
	noisy = 0.2
	reach = 1.5
)

// region returns the neighborhood of a point, given the losses of all
// observations.
func (s *Search) region(d Data, losses, centre []float64, k gp.Kernel) region {
	g := region{centre: centre}
	for i, dimension := range s.features.dimensions {
		if !dimension.Categorical && dimension.Values != 1 && !math.IsNaN(centre[i]) {
			g.dimensions = append(g.dimensions, i)
		}
	}
	g.basis = make([][]float64, len(g.dimensions))
	for i, dimension := range g.dimensions {
		g.basis[i] = make([]float64, i+1)
		g.basis[i][i] = k.Lengths[dimension]
	}
	for i := range d.Observations {
		if g.local(d.Observations[i].Point, 1) != nil {
			g.rows = append(g.rows, i)
		}
	}
	g.orient(d, losses)
	distances := make([]float64, len(d.Observations))
	for _, i := range g.rows {
		for _, v := range g.local(d.Observations[i].Point, 1) {
			distances[i] = math.Hypot(distances[i], width*(v-0.5))
		}
	}
	slices.SortStableFunc(g.rows, func(a, b int) int { return cmp.Compare(distances[a], distances[b]) })
	for _, i := range g.rows {
		g.distances = append(g.distances, distances[i])
	}
	return g
}

// orient makes the basis the Cholesky factor of the covariance of the best
// observations around the centre.
func (g *region) orient(d Data, losses []float64) {
	n := len(g.dimensions)
	if len(g.rows) < (n+1)*(n+2) { // twice what a covariance has of entries
		return
	}
	best := slices.Clone(g.rows)
	slices.SortStableFunc(best, func(a, b int) int { return cmp.Compare(losses[a], losses[b]) })
	best = best[1 : 1+orientPerDimension*n] // without the centre
	covariance := make([][]float64, n)
	for i, di := range g.dimensions {
		covariance[i] = make([]float64, i+1)
		for j, dj := range g.dimensions[:i+1] {
			for _, row := range best {
				p := d.Observations[row].Point
				covariance[i][j] += (p[di] - g.centre[di]) * (p[dj] - g.centre[dj]) / float64(len(best))
			}
			if i != j {
				covariance[i][j] *= correlated
			}
		}
		covariance[i][i] += 1e-24
	}
	if gp.Factor(covariance) {
		g.basis, g.oriented = covariance, true
	}
}

// local returns the coordinates of a point in the region, ½ at its centre, or
// nil for a point that differs from it in other dimensions.
func (g *region) local(point []float64, radius float64) []float64 {
	row := make([]float64, 0, len(g.dimensions))
	for i, v := range point {
		k := len(row)
		switch c := g.centre[i]; {
		case k < len(g.dimensions) && g.dimensions[k] == i && !math.IsNaN(v):
			rest := v - c
			for j, b := range g.basis[k][:k] {
				rest -= b * row[j]
			}
			row = append(row, rest/g.basis[k][k])
		case v != c && !(math.IsNaN(v) && math.IsNaN(c)):
			return nil
		}
	}
	for k := range row {
		row[k] = 0.5 + row[k]/(radius*width)
	}
	return row
}

// global is the inverse of local, within the cube.
func (g *region) global(row []float64, radius float64) []float64 {
	u := slices.Clone(g.centre)
	for k, i := range g.dimensions {
		for j, b := range g.basis[k] {
			u[i] += b * (row[j] - 0.5) * radius * width
		}
		u[i] = inUnit(u[i])
	}
	for i, v := range u {
		if math.IsNaN(v) {
			u[i] = 0.5
		}
	}
	return u
}

// minimize returns the local coordinates at which improvement on the best
// output is expected most, of those within reach.
func (g *region) minimize(m *gp.Model, best, radius float64, random func() float64) []float64 {
	n := len(g.dimensions)
	lower, upper := make([]float64, n), make([]float64, n)
	for k, i := range g.dimensions {
		lower[k], upper[k] = 0.5-reach/width, 0.5+reach/width
		if !g.oriented { // else the border of the cube is no bound of one coordinate
			unit := g.basis[k][k] * radius * width
			lower[k], upper[k] = max(lower[k], 0.5-g.centre[i]/unit), min(upper[k], 0.5+(1-g.centre[i])/unit)
		}
	}
	f := acquisition.LogImprovement(best)
	meanGradient, varianceGradient := make([]float64, n), make([]float64, n)
	slopes := make([]acquisition.Slope, 1)
	climb := func(x, gradient []float64) float64 {
		mean, variance := m.PredictGradient(x, meanGradient, varianceGradient)
		deviation := math.Sqrt(variance)
		value := f([]acquisition.Prediction{{Mean: mean, Deviation: deviation}}, slopes)
		for i := range gradient {
			gradient[i] = -slopes[0].Mean*meanGradient[i] - slopes[0].Deviation*varianceGradient[i]/(2*deviation)
		}
		return -value
	}
	least, at := math.Inf(1), lower
	for start := range 4 {
		x := make([]float64, n)
		for k := range x {
			x[k] = lower[k] + (upper[k]-lower[k])*random()
			if start == 0 { // near the centre, where the gradient is not 0
				x[k] = 0.5 + 1e-3*(x[k]-0.5)
			}
		}
		descent := lbfgs.Config{Iterations: 30, Memory: 10, Tolerance: 1e-5}
		if v := lbfgs.Minimize(climb, x, lower, upper, descent); v < least {
			least, at = v, x
		}
	}
	return at
}
