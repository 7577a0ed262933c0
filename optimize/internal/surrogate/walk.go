// SPDX-License-Identifier: Apache-2.0

package surrogate

import (
	"math"
	"slices"

	"diwan.dev/diwan/optimize/internal/random"
)

// Walker looks for points with a low rating by random steps that become shorter.
type Walker struct {
	Features Features
	Numbers  *random.Stream
	Rate     func(point []float64) float64
}

// Descend returns the best point of some steps from a point with a rating.
func (w *Walker) Descend(from []float64, rating float64, steps int) ([]float64, float64) {
	for k := range steps {
		u := w.Near(from, 0.2*math.Pow(0.01, float64(k)/float64(steps)))
		if v := w.Rate(u); v < rating {
			from, rating = u, v
		}
	}
	return from, rating
}

// Near returns a point at some distance, in a part of the coordinates.
func (w *Walker) Near(u []float64, distance float64) []float64 {
	moved := slices.Clone(u)
	part := math.Max(w.Numbers.Float(), 1/float64(len(u)))
	for i := range moved {
		switch {
		case w.Numbers.Float() >= part:
		case w.Features.categories[i] > 0:
			moved[i] = w.Numbers.Float()
		default:
			step := distance * math.Sqrt(-2*math.Log(w.Numbers.Float())) * math.Cos(2*math.Pi*w.Numbers.Float())
			moved[i] = math.Min(math.Max(moved[i]+step, 0), 1)
		}
	}
	return moved
}

// Whole returns a point with a place in the middle for each coordinate that it does
// not have.
func Whole(unit []float64) []float64 {
	whole := slices.Clone(unit)
	for i, u := range whole {
		if math.IsNaN(u) {
			whole[i] = 0.5
		}
	}
	return whole
}
