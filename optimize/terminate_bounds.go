// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"math"
	"slices"

	"diwan.dev/diwan/optimize/internal/gp"
	"diwan.dev/diwan/optimize/internal/random"
)

// bounds are confidence bounds on the losses of a search.
type bounds struct {
	space    *Space
	features features
	units    [][]float64 // of the trials that the model learns from, the best first
	process  *gp.Model
	unit     float64 // of the model's outputs
	width    float64 // of the bounds, in standard deviations
}

func newBounds(s *Space, points []Point, losses []float64, c RegretConfig) *bounds {
	b := &bounds{space: s, features: newFeatures(s)}
	count := max(int(math.Ceil(c.Part*float64(len(losses)))), 2)
	worst := losses[ascending(losses)[count-1]]
	var inputs [][]float64
	var outputs []float64
	for _, i := range selection(losses, modelled) {
		u := s.Unit(points[i])
		b.units = append(b.units, u)
		inputs, outputs = append(inputs, b.features.row(u)), append(outputs, math.Min(losses[i], worst))
	}
	b.unit = standardise(outputs)
	b.process = b.features.fit(inputs, outputs)
	// Srinivas et al. (2010), theorem 1, narrowed by 5 as the paper does.
	n, d := float64(len(losses)), float64(s.Len())
	b.width = math.Sqrt(2 * math.Log(d*n*n*math.Pi*math.Pi/(6*c.Risk)) / 5)
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

// at returns the lower and the upper bound at a point of the unit cube, in the
// model's unit.
func (b *bounds) at(unit []float64) (lower, upper float64) {
	mean, variance := b.process.Predict(b.features.row(unit))
	half := b.width * math.Sqrt(variance)
	return mean - half, mean + half
}

// regret returns the bound on the regret.
func (b *bounds) regret(numbers *random.Stream) float64 {
	if b.unit == 0 {
		return 0
	}
	upper := math.Inf(1)
	for _, u := range b.units {
		_, up := b.at(u)
		upper = math.Min(upper, up)
	}
	return math.Min(b.unit*math.Max(upper-b.lowest(numbers), 0), math.MaxFloat64)
}

const (
	regretScattered = 1000 // random points of which the lowest bounds are sought
	regretDescents  = 5    // of them from which it is followed down
	regretSteps     = 100
)

// lowest returns the least lower bound of any point that is found.
func (b *bounds) lowest(numbers *random.Stream) float64 {
	w := walker{space: b.space, numbers: numbers, rate: func(u []float64) float64 {
		lower, _ := b.at(b.space.Unit(b.space.Quantile(u)))
		return lower
	}}
	starts := make([][]float64, 0, regretScattered+regretDescents)
	for _, u := range b.units[:min(regretDescents, len(b.units))] {
		starts = append(starts, anywhere(u))
	}
	for range regretScattered {
		u := make([]float64, b.space.Len())
		for i := range u {
			u[i] = numbers.Float()
		}
		starts = append(starts, u)
	}
	ratings := make([]float64, len(starts))
	for i, u := range starts {
		ratings[i] = w.rate(u)
	}
	least := math.Inf(1)
	for _, i := range ascending(ratings)[:regretDescents] {
		_, v := w.descend(starts[i], ratings[i], regretSteps)
		least = math.Min(least, v)
	}
	return least
}

// worth returns the noise that the model sees, or a hundredth of by how much
// the best loss is better than the median of some first ones, if that is more.
func (b *bounds) worth(losses []float64, first int) float64 {
	sorted := slices.Sorted(slices.Values(losses[:first]))
	gain := sorted[first/2]/100 - slices.Min(losses)/100
	return math.Max(b.unit*math.Sqrt(b.process.Kernel().Noise), gain)
}
