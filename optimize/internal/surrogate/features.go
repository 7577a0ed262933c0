// SPDX-License-Identifier: Apache-2.0

package surrogate

import (
	"cmp"
	"math"
	"slices"

	"diwan.dev/diwan/optimize/internal/gp"
)

// Features encodes points of the unit cube for a Gaussian process: a number from 0
// to 1 for each coordinate, but one for each category where it has categories.
// A coordinate that is not a number, because a point lacks it, is in the middle.
type Features struct {
	categories []int // by coordinate: how many, 0 for a number
	groups     []int // by feature: the coordinate
	first      []int // by coordinate: its first feature
}

// NewFeatures returns the features of points whose coordinates have some numbers of
// categories, each an equal part of the unit interval; 0 is a number.
func NewFeatures(categories []int) Features {
	f := Features{categories: categories}
	for i := range categories {
		f.first = append(f.first, len(f.groups))
		for range f.width(i) {
			f.groups = append(f.groups, i)
		}
	}
	return f
}

// Dimensions returns how many coordinates points have.
func (f Features) Dimensions() int { return len(f.categories) }

// Of returns which features are those of some coordinates.
func (f Features) Of(coordinate func(i int) bool) (features []int) {
	for k, i := range f.groups {
		if coordinate(i) {
			features = append(features, k)
		}
	}
	return features
}

func (f Features) width(i int) int { return max(f.categories[i], 1) }

// Row returns the features of a point.
func (f Features) Row(unit []float64) []float64 {
	row := make([]float64, len(f.groups))
	for i, u := range unit {
		part := row[f.first[i] : f.first[i]+f.width(i)]
		switch {
		case math.IsNaN(u):
			for k := range part {
				part[k] = 0.5
			}
		case len(part) > 1:
			part[min(int(u*float64(len(part))), len(part)-1)] = 1
		default:
			part[0] = u
		}
	}
	return row
}

const (
	// modelled is how many results a process learns from: its cost grows with
	// the third power.
	modelled = 200
	// fitSteps is how many steps the fit of a kernel takes.
	fitSteps = 25
)

// Fit returns the process of some observations.
func (f Features) Fit(inputs [][]float64, outputs []float64) *gp.Model {
	prior := gp.DefaultPrior(f.Dimensions())
	kernel := prior.Mode()
	if len(inputs) > 3 {
		kernel, _ = gp.Fit(prior, kernel, fitSteps, f.groups, inputs, outputs)
	}
	return gp.New(kernel, f.groups, inputs, outputs)
}

// Selection returns the indices of those of some losses that a process is to learn
// from: all in ascending order, or if there are too many the best half of as many
// as it can take and an even choice of the others.
func Selection(losses []float64) []int {
	order := Ascending(losses)
	if len(order) <= modelled {
		return order
	}
	chosen := slices.Clone(order[:modelled/2])
	rest := order[modelled/2:]
	for k := range modelled / 2 {
		chosen = append(chosen, rest[k*len(rest)/(modelled/2)])
	}
	return chosen
}

// Ascending returns the indices of some numbers in their order.
func Ascending(numbers []float64) []int {
	order := make([]int, len(numbers))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(numbers[a], numbers[b]) })
	return order
}
