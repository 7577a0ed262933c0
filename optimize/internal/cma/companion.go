// SPDX-License-Identifier: Apache-2.0

package cma

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"diwan.dev/diwan/optimize/internal/random"
)

// Companion draws the coordinates of the unit cube that a search leaves out, each
// on its own: categories, and what exists in some points only. It prefers values
// that the best trials have, in proportion to how often all trials have them, as
// TPE does (J. Bergstra et al., "Algorithms for hyper-parameter optimization",
// 2011).
type Companion struct {
	coordinates []Coordinate
	best        []trial     // the best trials, from the best on
	total       int         // trials
	tried       [][]float64 // by coordinate and category: how many trials had it
}

// Coordinate is one that a [Companion] draws.
type Coordinate struct {
	// Index is its place in a point.
	Index int
	// Categories is how many there are, each an equal part of the unit interval;
	// 0 where the coordinate is a number.
	Categories int
}

// trial is a point and its merit.
type trial struct {
	index           int
	point           []float64
	value, violated float64
}

const (
	mostBest  = 25   // trials that count as the best, at most
	bestPart  = 0.15 // and as a part of all
	proposals = 8    // random values of which the most promising is taken
	mostPrior = 5    // trials that the even chance of all categories counts as: one for each, but no more than so many
	kernel    = 0.1  // deviation of a number from that of a good trial, of its range
)

// NewCompanion returns one that has learned nothing yet.
func NewCompanion(coordinates []Coordinate) *Companion {
	c := &Companion{coordinates: coordinates, tried: make([][]float64, len(coordinates))}
	for k, each := range coordinates {
		c.tried[k] = make([]float64, each.Categories)
	}
	return c
}

// Learn takes a trial into account, with the value +Inf where it has none. A
// coordinate that its point does not have is not a number. What is remembered does
// not depend on the order in which trials come.
func (c *Companion) Learn(index int, point []float64, value, violation float64) {
	c.total++
	for k, each := range c.coordinates {
		if u := point[each.Index]; each.Categories > 0 && !math.IsNaN(u) {
			c.tried[k][each.category(u)]++
		}
	}
	if math.IsInf(value, 1) {
		return
	}
	learned := trial{index, point, value, violation}
	place := sort.Search(len(c.best), func(k int) bool {
		order := c.best[k].compare(learned)
		return order > 0 || order == 0 && c.best[k].index > index
	})
	if c.best = slices.Insert(c.best, place, learned); len(c.best) > mostBest {
		c.best = c.best[:mostBest]
	}
}

func (t trial) compare(o trial) int {
	return cmp.Or(cmp.Compare(t.violated, o.violated), cmp.Compare(t.value, o.value))
}

func (c Coordinate) category(u float64) int {
	return min(int(u*float64(c.Categories)), c.Categories-1)
}

// Complete draws the coordinates of a point.
func (c *Companion) Complete(point []float64, numbers *random.Stream) {
	good := c.best[:min(len(c.best), int(math.Ceil(bestPart*float64(c.total))))]
	for k, each := range c.coordinates {
		if each.Categories > 0 {
			point[each.Index] = each.draw(good, c.tried[k], numbers)
		} else {
			point[each.Index] = each.near(good, numbers)
		}
	}
}

// draw returns the middle of a category that the good trials prefer.
func (c Coordinate) draw(good []trial, tried []float64, numbers *random.Stream) float64 {
	prior := math.Min(1, mostPrior/float64(c.Categories))
	liked, weight := make([]float64, c.Categories), prior*float64(c.Categories)
	for k := range liked {
		liked[k] = prior
	}
	for _, t := range good {
		if u := t.point[c.Index]; !math.IsNaN(u) {
			liked[c.category(u)]++
			weight++
		}
	}
	chosen, promise := 0, -1.0
	for range proposals {
		k, left := 0, numbers.Float()*weight
		for left -= liked[0]; left > 0 && k < len(liked)-1; left -= liked[k] {
			k++
		}
		if ratio := liked[k] / (tried[k] + prior); ratio > promise {
			chosen, promise = k, ratio
		}
	}
	return (float64(chosen) + 0.5) / float64(c.Categories)
}

// near returns a number near that of a good trial, or now and then any.
func (c Coordinate) near(good []trial, numbers *random.Stream) float64 {
	var centres []float64
	for _, t := range good {
		if u := t.point[c.Index]; !math.IsNaN(u) {
			centres = append(centres, u)
		}
	}
	k := int(numbers.Uint64() % uint64(len(centres)+1))
	if u := numbers.Float(); k == len(centres) {
		return u
	}
	u := math.Abs(math.Mod(centres[k]+kernel*numbers.Normal(), 2))
	return math.Min(u, 2-u)
}
