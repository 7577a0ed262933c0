// SPDX-License-Identifier: Apache-2.0

package bayes

import (
	"cmp"
	"math"
	"slices"

	"diwan.dev/diwan/optimize/internal/lbfgs"
)

// candidate is a point of the cube. u has a coordinate for every dimension;
// point is the point of the search that it stands for.
type candidate struct {
	u, point []float64
	rating   float64
}

// maximize returns points of which the first are rated highest: the best of
// some candidates, each improved by steps in its continuous and its finite
// dimensions, and then the other candidates.
func (s *Search) maximize(r *rating, best [][]float64, q Query) [][]float64 {
	candidates := s.candidates(s.config.Candidates, r.at, best, q)
	starts := min(s.config.Starts, len(candidates))
	for i := range starts {
		s.improve(r, &candidates[i], q)
	}
	slices.SortStableFunc(candidates[:starts], byRating)
	points := make([][]float64, len(candidates))
	for i, c := range candidates {
		points[i] = c.point
	}
	return points
}

func byRating(a, b candidate) int { return cmp.Compare(b.rating, a.rating) }

// candidates returns random points and neighbours of the best, by rating.
func (s *Search) candidates(count int, rate func(point []float64) float64, best [][]float64, q Query) []candidate {
	var candidates []candidate
	add := func(u []float64) {
		if point, ok := q.Snap(u); ok {
			candidates = append(candidates, candidate{u, point, rate(point)})
		}
	}
	for i := range count {
		u := make([]float64, len(s.features.dimensions))
		for j := range u {
			u[j] = q.Random()
		}
		if i%3 == 0 && len(best) > 0 {
			s.neighbour(u, best[i/3%len(best)], reaches[i/3%len(reaches)], q.Random)
		}
		add(u)
	}
	slices.SortStableFunc(candidates, byRating)
	return candidates
}

// reaches are how far neighbours are away in a numeric dimension.
var reaches = [...]float64{0.2, 0.05, 0.01}

// neighbour moves a random point u near to another: it keeps the coordinates of
// that in most dimensions, and is within reach in a few.
func (s *Search) neighbour(u, point []float64, reach float64, random func() float64) {
	moves := max(0.2, min(1, 3/float64(len(u))))
	for j, d := range s.features.dimensions {
		if math.IsNaN(point[j]) {
			continue
		}
		switch move := random() < moves; {
		case !move:
			u[j] = point[j]
		case !d.Categorical:
			u[j] = inUnit(point[j] + max(reach, d.cell())*normal(random))
		}
	}
}

// cell returns how far neighbouring values are apart.
func (d Dimension) cell() float64 {
	if d.Values == 0 {
		return 0
	}
	return 1 / float64(d.Values)
}

func inUnit(v float64) float64 { return min(max(v, 0), 1) }

func normal(random func() float64) float64 { return math.Sqrt2 * math.Erfinv(2*random()-1) }

// improve moves a candidate to where its rating is a maximum.
func (s *Search) improve(r *rating, c *candidate, q Query) {
	s.ascend(r, c, q)
	for range 2 { // rounds over the finite dimensions
		if !s.exchange(r, c, q) {
			return
		}
		s.ascend(r, c, q)
	}
}

// try makes a candidate another if that is rated higher.
func try(r *rating, c *candidate, u []float64, q Query) bool {
	point, ok := q.Snap(u)
	if !ok {
		return false
	}
	if v := r.at(point); v > c.rating {
		c.u, c.point, c.rating = slices.Clone(u), point, v
		return true
	}
	return false
}

// ascend climbs in the numeric dimensions that the candidate has.
func (s *Search) ascend(r *rating, c *candidate, q Query) {
	var free []int
	for i, d := range s.features.dimensions {
		if !d.Categorical && d.Values != 1 && !math.IsNaN(c.point[i]) {
			free = append(free, i)
		}
	}
	if len(free) == 0 {
		return
	}
	x, lower, upper := make([]float64, len(free)), make([]float64, len(free)), make([]float64, len(free))
	for k, i := range free {
		x[k] = c.point[i]
		half := s.features.dimensions[i].cell() / 2
		lower[k], upper[k] = half, 1-half
	}
	at := slices.Clone(c.point)
	descent := lbfgs.Config{Iterations: 20, Memory: 8, Tolerance: 1e-4}
	lbfgs.Minimize(func(x, gradient []float64) float64 {
		for k, i := range free {
			at[i] = x[k]
		}
		value := r.climb(at, free, gradient)
		for k := range gradient {
			gradient[k] = -gradient[k]
		}
		return -value
	}, x, lower, upper, descent)
	u := slices.Clone(c.u)
	for k, i := range free {
		u[i] = x[k]
	}
	try(r, c, u, q)
}

// exchange tries other values in each finite dimension: all of a categorical
// one, some neighbours in an ordered one. It reports whether one of them was
// rated higher.
func (s *Search) exchange(r *rating, c *candidate, q Query) bool {
	better := false
	for i, d := range s.features.dimensions {
		if d.Values < 2 || d.Values > exchanged || math.IsNaN(c.point[i]) {
			continue
		}
		for _, v := range d.others(c.point[i]) {
			u := slices.Clone(c.u)
			u[i] = v
			better = try(r, c, u, q) || better
		}
	}
	return better
}

// exchanged is up to how many values of a dimension are tried one by one; more
// are as good as a continuum.
const exchanged = 100

// others returns coordinates of values to try in place of that at u.
func (d Dimension) others(u float64) []float64 {
	if !d.Categorical {
		var near []float64
		for _, cells := range []float64{-4, -2, -1, 1, 2, 4} {
			if v := u + cells*d.cell(); v > 0 && v < 1 {
				near = append(near, v)
			}
		}
		return near
	}
	var others []float64
	for value := range d.Values {
		if value != d.category(u) {
			others = append(others, (float64(value)+0.5)*d.cell())
		}
	}
	return others
}
