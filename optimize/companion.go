// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"math"
	"slices"
	"sort"

	"diwan.dev/diwan/optimize/internal/random"
)

// companion draws the parameters that a sampler of numbers does not search
// itself, each on its own: categories, and what exists in some points only. It
// prefers values that the best trials have, in proportion to how often all
// trials have them, as TPE does (J. Bergstra et al., "Algorithms for
// hyper-parameter optimization", 2011).
type companion struct {
	axes  []int
	best  []Trial           // the best trials, from the best on
	total int               // trials with values
	tried map[int][]float64 // by axis with an end to its values: how many trials had each
}

const (
	mostBest  = 25   // trials that count as the best, at most
	bestPart  = 0.15 // and as a part of all
	proposals = 8    // random values of which the most promising is taken
	mostPrior = 5    // trials that the even chance of all categories counts as: one for each, but no more than so many
	kernel    = 0.1  // deviation of a number from that of a good trial, of its range
)

func newCompanion(s *Space, axes []int) companion {
	c := companion{axes: axes, tried: make(map[int][]float64)}
	for _, i := range axes {
		if s.axes[i].Kind == KindCategorical {
			c.tried[i] = make([]float64, s.axes[i].count)
		}
	}
	return c
}

// learn takes a trial into account. What it remembers does not depend on the
// order in which trials come.
func (c *companion) learn(h *History, t Trial) {
	if len(c.axes) == 0 || t.State == Lost {
		return
	}
	c.total++
	for i, tried := range c.tried {
		if at := t.Point.at[i]; !math.IsNaN(at) {
			tried[int(at)]++
		}
	}
	if len(t.Values) == 0 || t.State == Infeasible {
		return
	}
	place := sort.Search(len(c.best), func(k int) bool {
		order := h.compare(c.best[k], t)
		return order > 0 || order == 0 && c.best[k].Index > t.Index
	})
	if c.best = slices.Insert(c.best, place, t); len(c.best) > mostBest {
		c.best = c.best[:mostBest]
	}
}

// complete returns the point at u, with values drawn for its other axes.
func (c *companion) complete(s *Space, u []float64, axes []int, numbers *random.Stream) Point {
	good := c.best[:min(len(c.best), int(math.Ceil(bestPart*float64(c.total))))]
	for _, i := range axes {
		if s.axes[i].Kind == KindCategorical {
			u[i] = c.category(s, i, good, numbers)
		} else {
			u[i] = number(s, i, good, numbers)
		}
	}
	return s.Quantile(u)
}

// category returns where in the unit interval a category of axis i is that the
// good trials prefer.
func (c *companion) category(s *Space, i int, good []Trial, numbers *random.Stream) float64 {
	count := s.axes[i].count
	prior := math.Min(1, mostPrior/float64(count))
	liked, weight := make([]float64, count), prior*float64(count)
	for k := range liked {
		liked[k] = prior
	}
	for _, t := range good {
		if at := t.Point.at[i]; !math.IsNaN(at) {
			liked[int(at)]++
			weight++
		}
	}
	chosen, promise := 0, -1.0
	for range proposals {
		k, left := 0, numbers.Float()*weight
		for left -= liked[0]; left > 0 && k < len(liked)-1; left -= liked[k] {
			k++
		}
		if ratio := liked[k] / (c.tried[i][k] + prior); ratio > promise {
			chosen, promise = k, ratio
		}
	}
	return (float64(chosen) + 0.5) / float64(count)
}

// number returns a number of axis i in the unit interval near that of a good
// trial, or now and then any.
func number(s *Space, i int, good []Trial, numbers *random.Stream) float64 {
	var centres []float64
	for _, t := range good {
		if at := t.Point.at[i]; !math.IsNaN(at) {
			centres = append(centres, s.axes[i].unit(at))
		}
	}
	k := int(numbers.Uint64() % uint64(len(centres)+1))
	if u := numbers.Float(); k == len(centres) {
		return u
	}
	u := math.Abs(math.Mod(centres[k]+kernel*numbers.Normal(), 2))
	return math.Min(u, 2-u)
}
