// SPDX-License-Identifier: Apache-2.0

package regret

import (
	"math"
	"slices"

	"diwan.dev/diwan/optimize/internal/gp"
	"diwan.dev/diwan/optimize/internal/random"
	"diwan.dev/diwan/optimize/internal/surrogate"
)

// Bounds are confidence bounds on the losses of a search.
type Bounds struct {
	features surrogate.Features
	points   [][]float64 // of the trials that the model learns from, the best first
	process  *gp.Model
	unit     float64 // of the model's outputs
	width    float64 // of the bounds, in standard deviations
}

// NewBounds returns the bounds on the losses at some points, of which the part that
// is best is told apart. They may be wrong with a risk in (0, 1).
func NewBounds(f surrogate.Features, points [][]float64, losses []float64, part, risk float64) *Bounds {
	b := &Bounds{features: f}
	count := max(int(math.Ceil(part*float64(len(losses)))), 2)
	worst := losses[surrogate.Ascending(losses)[count-1]]
	var inputs [][]float64
	var outputs []float64
	for _, i := range surrogate.Selection(losses) {
		b.points = append(b.points, points[i])
		inputs, outputs = append(inputs, f.Row(points[i])), append(outputs, math.Min(losses[i], worst))
	}
	b.unit = standardise(outputs)
	b.process = f.Fit(inputs, outputs)
	// Srinivas et al. (2010), theorem 1, narrowed by 5 as the paper does.
	n, d := float64(len(losses)), float64(f.Dimensions())
	b.width = math.Sqrt(2 * math.Log(d*n*n*math.Pi*math.Pi/(6*risk)) / 5)
	return b
}

// standardise gives numbers a mean of 0 and a deviation of 1, and returns what
// that was.
func standardise(numbers []float64) float64 {
	unit := slices.Max(numbers)/2 - slices.Min(numbers)/2 // which does not overflow
	if unit == 0 {
		clear(numbers)
		return 0
	}
	middle := slices.Max(numbers)/2 + slices.Min(numbers)/2
	mean, square, n := 0.0, 0.0, float64(len(numbers))
	for i, v := range numbers {
		numbers[i] = (v - middle) / unit
		mean += numbers[i] / n
	}
	for _, v := range numbers {
		square += (v - mean) * (v - mean) / n
	}
	deviation := math.Sqrt(square)
	for i, v := range numbers {
		numbers[i] = (v - mean) / deviation
	}
	return unit * deviation
}

// at returns the lower and the upper bound at a point, in the model's unit.
func (b *Bounds) at(point []float64) (lower, upper float64) {
	mean, variance := b.process.Predict(b.features.Row(point))
	half := b.width * math.Sqrt(variance)
	return mean - half, mean + half
}

// Regret returns the bound on the regret: the least upper bound of a trial less the
// least lower bound of any point. What snap makes of a point is where it is tried.
func (b *Bounds) Regret(snap func([]float64) []float64, numbers *random.Stream) float64 {
	if b.unit == 0 {
		return 0
	}
	upper := math.Inf(1)
	for _, u := range b.points {
		_, up := b.at(u)
		upper = math.Min(upper, up)
	}
	return math.Min(b.unit*math.Max(upper-b.lowest(snap, numbers), 0), math.MaxFloat64)
}

const (
	scattered = 1000 // random points of which the lowest bounds are sought
	descents  = 5    // of them from which it is followed down
	steps     = 100
)

// lowest returns the least lower bound of any point that is found.
func (b *Bounds) lowest(snap func([]float64) []float64, numbers *random.Stream) float64 {
	w := surrogate.Walker{Features: b.features, Numbers: numbers, Rate: func(u []float64) float64 {
		lower, _ := b.at(snap(u))
		return lower
	}}
	starts := make([][]float64, 0, scattered+descents)
	for _, u := range b.points[:min(descents, len(b.points))] {
		starts = append(starts, surrogate.Whole(u))
	}
	for range scattered {
		u := make([]float64, b.features.Dimensions())
		for i := range u {
			u[i] = numbers.Float()
		}
		starts = append(starts, u)
	}
	ratings := make([]float64, len(starts))
	for i, u := range starts {
		ratings[i] = w.Rate(u)
	}
	least := math.Inf(1)
	for _, i := range surrogate.Ascending(ratings)[:descents] {
		_, v := w.Descend(starts[i], ratings[i], steps)
		least = math.Min(least, v)
	}
	return least
}

// Worth returns the noise that the model sees, or a hundredth of by how much
// the best loss is better than the median of some first ones, if that is more.
func (b *Bounds) Worth(losses []float64, first int) float64 {
	sorted := slices.Sorted(slices.Values(losses[:first]))
	gain := sorted[first/2]/100 - slices.Min(losses)/100
	return math.Max(b.unit*math.Sqrt(b.process.Kernel().Noise), gain)
}
