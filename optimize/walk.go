// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"math"
	"slices"

	"diwan.dev/diwan/optimize/internal/random"
)

// walker looks for points of the unit cube with a low rating by random steps
// that become shorter.
type walker struct {
	space   *Space
	numbers *random.Stream
	rate    func(unit []float64) float64
}

// descend returns the best point of some steps from a point with a rating.
func (w *walker) descend(from []float64, rating float64, steps int) ([]float64, float64) {
	for k := range steps {
		u := w.near(from, 0.2*math.Pow(0.01, float64(k)/float64(steps)))
		if v := w.rate(u); v < rating {
			from, rating = u, v
		}
	}
	return from, rating
}

// near returns a point at some distance, in a part of the parameters.
func (w *walker) near(u []float64, distance float64) []float64 {
	moved := slices.Clone(u)
	part := math.Max(w.numbers.Float(), 1/float64(len(u)))
	for i := range moved {
		switch {
		case w.numbers.Float() >= part:
		case w.space.axes[i].Kind == KindCategorical:
			moved[i] = w.numbers.Float()
		default:
			step := distance * math.Sqrt(-2*math.Log(w.numbers.Float())) * math.Cos(2*math.Pi*w.numbers.Float())
			moved[i] = math.Min(math.Max(moved[i]+step, 0), 1)
		}
	}
	return moved
}

// anywhere returns a point of the unit cube with a place in the middle for each
// parameter that it does not have.
func anywhere(unit []float64) []float64 {
	whole := slices.Clone(unit)
	for i, u := range whole {
		if math.IsNaN(u) {
			whole[i] = 0.5
		}
	}
	return whole
}
