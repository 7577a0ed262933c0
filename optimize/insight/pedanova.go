// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"fmt"
	"math"
	"slices"

	"diwan.dev/diwan/optimize"
)

// bestPart is the part of the trials that count as the best, as in the paper.
const bestPart = 0.1

// PEDANOVA returns what makes a trial one of the best tenth: the share of each
// parameter in the variance of being one of them, the most important first
// (Watanabe, Bansal and Hutter, "PED-ANOVA: efficiently quantifying
// hyperparameter importance in arbitrary subspaces", 2023).
//
// It compares how the best are spread over a parameter with how all are, so
// that it does not matter that a search looks more closely where it is good.
func PEDANOVA(h *optimize.History, o Options) ([]Share, error) {
	s, err := gather(h, o)
	if err != nil {
		return nil, fmt.Errorf("cannot compute importance: %w", err)
	}
	best := s.best()
	part := 0.0
	for _, is := range best {
		if is {
			part += 1 / float64(len(best))
		}
	}
	shares := make([]Share, s.space.Len())
	for i := range shares {
		shares[i].Name = s.space.Parameter(i).Name
		if part < 1 { // or all are equally good
			shares[i].Share = math.Min(s.pearson(i, best)/(part*(1-part)), 1)
		}
	}
	return sorted(shares), nil
}

// best reports which are the best trials: as many as bestPart says, at least
// one, and all that are as good as the last of them.
func (s sample) best() []bool {
	y := slices.Clone(s.y)
	slices.Sort(y)
	last := max(int(math.Ceil(bestPart*float64(len(y)))), 1) - 1
	border := y[last]
	if !s.minimal {
		border = y[len(y)-1-last]
	}
	best := make([]bool, len(y))
	for i, v := range s.y {
		best[i] = s.minimal && v <= border || !s.minimal && v >= border
	}
	return best
}

// pearson returns the variance of the chance to be one of the best, as
// parameter i moves, over the trials that have it: by Bayes' rule the chance
// is r·b/a where it is r for all of them, and b and a are the densities of the
// best and of all.
func (s sample) pearson(i int, best []bool) float64 {
	var all, good []float64
	for k, row := range s.x {
		if math.IsNaN(row[i]) {
			continue
		}
		all = append(all, row[i])
		if best[k] {
			good = append(good, row[i])
		}
	}
	if len(good) == 0 {
		return 0
	}
	p := s.space.Parameter(i)
	a, b := density(all, p), density(good, p)
	chance, variance := float64(len(good))/float64(len(all)), 0.0
	for cell := range a {
		d := chance * (b[cell]/a[cell] - 1)
		variance += a[cell] * d * d
	}
	return variance * float64(len(all)) / float64(len(s.x))
}

// densityCells is how finely densities are computed.
const densityCells = 100

// density returns the probability of each of some cells of a parameter, after
// the places of some trials in it. Of categories it is their frequency, of the
// others a sum of normal distributions that are cut off at 0 and 1, as wide as
// Scott's rule says. A trial's worth of even spread keeps it from 0.
func density(at []float64, p optimize.Parameter) []float64 {
	n := cells(p, densityCells)
	mass := make([]float64, n)
	for cell := range mass {
		mass[cell] = 1 / float64(n)
	}
	width := 0.0
	if p.Kind != optimize.KindCategorical {
		width = math.Max(1.06*math.Sqrt(variance(at))*math.Pow(float64(len(at)), -0.2), 0.5/densityCells)
	}
	for cell, count := range tally(at, n) {
		if count > 0 {
			spread(mass, cell, count, width)
		}
	}
	for cell := range mass {
		mass[cell] /= float64(len(at) + 1)
	}
	return mass
}

// tally counts what is in each of n cells.
func tally(at []float64, n int) []float64 {
	counts := make([]float64, n)
	for _, u := range at {
		counts[min(int(u*float64(n)), n-1)]++
	}
	return counts
}

// spread adds a mass around a cell.
func spread(mass []float64, cell int, amount, width float64) {
	if width == 0 {
		mass[cell] += amount
		return
	}
	n := float64(len(mass))
	center := middle(cell, len(mass))
	below := func(x float64) float64 { return math.Erfc((center-x)/(width*math.Sqrt2)) / 2 }
	from, within := below(0), below(1)-below(0)
	for k := range mass {
		to := below(float64(k+1) / n)
		mass[k] += amount * (to - from) / within
		from = to
	}
}
