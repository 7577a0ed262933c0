// SPDX-License-Identifier: Apache-2.0

package stopping

import (
	"cmp"
	"math"
	"slices"
	"sync"
)

// ended is what rules ask of the complete curves again and again. It is made
// when it is first asked for, and kept up to date as trials end, so that a
// verdict costs the same however many they are. A reset, which what seldom
// happens calls for, has it made again.
type ended struct {
	mu      sync.Mutex // rules that read at once share it
	known   bool
	curves  []*Curve // the complete ones that have reported, by trial: sums of floats have an order
	horizon int      // the last step of the longest of them
	ranks   map[rank][]float64
}

// rank names a ranking: the sorted losses by a measure, of each curve with a
// report up to a step at the last such report.
type rank struct {
	measure measure
	step    int
}

// measure is what of a curve's reports up to a step is compared.
type measure int

const (
	lastLoss measure = iota
	averageLoss
)

func (m measure) of(curve *Curve, i int) float64 {
	if m == averageLoss {
		return curve.mean[i]
	}
	return curve.losses[i]
}

// maxRanked bounds the losses that are kept in rankings: 16 MB.
const maxRanked = 1 << 21

func (e *ended) reset() {
	e.known, e.curves, e.horizon, e.ranks = false, nil, math.MinInt, nil
}

// add takes in a curve that is complete now.
func (e *ended) add(curve *Curve) {
	if !e.known || curve.Len() == 0 {
		return
	}
	at, _ := slices.BinarySearchFunc(e.curves, curve.Trial, func(c *Curve, trial int) int { return cmp.Compare(c.Trial, trial) })
	e.curves = slices.Insert(e.curves, at, curve)
	e.horizon = max(e.horizon, curve.steps[curve.Len()-1])
	for r, list := range e.ranks {
		if n := curve.upTo(r.step); n > 0 {
			loss := r.measure.of(curve, n-1)
			i, _ := slices.BinarySearch(list, loss)
			e.ranks[r] = slices.Insert(list, i, loss)
		}
	}
}

// look makes it known, with its lock held.
func (e *ended) look(c *Curves) {
	if e.known {
		return
	}
	e.reset()
	e.known = true
	for _, curve := range c.list {
		if curve.State == Complete {
			e.add(curve)
		}
	}
}

// complete returns the curves of the complete trials that have reported. They
// must not be kept.
func (c *Curves) complete() []*Curve {
	c.ended.mu.Lock()
	defer c.ended.mu.Unlock()
	c.ended.look(c)
	return slices.Clip(c.ended.curves)
}

// horizon returns the last step of the longest complete trial, and false where
// there is none.
func (c *Curves) horizon() (step int, ok bool) {
	c.ended.mu.Lock()
	defer c.ended.mu.Unlock()
	c.ended.look(c)
	return c.ended.horizon, len(c.ended.curves) > 0
}

// ranked returns the losses of the complete curves with a report up to a step,
// sorted. They must not be changed, nor kept.
func (c *Curves) ranked(m measure, step int) []float64 {
	e := &c.ended
	e.mu.Lock()
	defer e.mu.Unlock()
	e.look(c)
	r := rank{m, step}
	if list, ok := e.ranks[r]; ok {
		return list
	}
	var list []float64
	for _, curve := range e.curves {
		if n := curve.upTo(step); n > 0 {
			list = append(list, m.of(curve, n-1))
		}
	}
	slices.Sort(list)
	if e.ranks == nil || (len(e.ranks)+1)*len(e.curves) > maxRanked {
		e.ranks = map[rank][]float64{}
	}
	e.ranks[r] = list
	return list
}
