// SPDX-License-Identifier: Apache-2.0

package stopping

import (
	"iter"
	"math"
	"slices"
	"sort"
)

// Direction is the direction in which values improve.
type Direction int

// The directions.
const (
	Minimize Direction = iota
	Maximize
)

// State is the state of a trial.
type State int

// The states of a trial.
const (
	// Running is one that may report more.
	Running State = iota
	// Complete is one that went to its end.
	Complete
	// Stopped is one that was stopped before its end.
	Stopped
	// Failed is one that ended otherwise.
	Failed
)

// Curve is what a trial has reported. Inside this package it consists of
// losses: numbers that are better if smaller in either direction, where a
// non-finite value is the worst.
type Curve struct {
	Trial     int
	State     State
	steps     []int
	losses    []float64
	best      []float64 // the least of losses[:i+1]
	mean      []float64 // the average of losses[:i+1]
	notFinite bool      // the value of the last report
}

// Len returns the number of reports.
func (c *Curve) Len() int { return len(c.steps) }

// upTo returns how many of the reports are of a step up to this.
func (c *Curve) upTo(step int) int { return sort.SearchInts(c.steps, step+1) }

// add appends a report.
func (c *Curve) add(step int, loss float64) {
	best, mean := loss, loss
	if n := float64(len(c.steps)); n > 0 {
		best = math.Min(best, c.best[len(c.best)-1])
		// Scaled before the sum, which therefore does not overflow.
		mean = c.mean[len(c.mean)-1]*(n/(n+1)) + loss/(n+1)
	}
	c.steps, c.losses = append(c.steps, step), append(c.losses, loss)
	c.best, c.mean = append(c.best, best), append(c.mean, mean)
}

// Curves are the learning curves of a search. They are not safe for several
// goroutines at once, but any number of rules may read them.
type Curves struct {
	direction Direction
	list      []*Curve
	byTrial   map[int]*Curve
	ended     ended
}

// NewCurves returns the curves of a search without reports.
func NewCurves(d Direction) *Curves {
	return &Curves{direction: d, byTrial: map[int]*Curve{}}
}

// Direction returns which values are better.
func (c *Curves) Direction() Direction { return c.direction }

// Report records the value that a trial has at a step. Steps grow, evenly or
// not: a report of a step that is not beyond the trial's last changes nothing,
// so that a trial which starts over after a crash may repeat itself.
func (c *Curves) Report(trial, step int, value float64) {
	curve := c.curve(trial)
	if n := len(curve.steps); n > 0 && step <= curve.steps[n-1] {
		return
	}
	curve.add(step, c.loss(value))
	curve.notFinite = !finite(value)
	if curve.State == Complete {
		c.ended.reset()
	}
}

// End records the outcome of a trial.
func (c *Curves) End(trial int, s State) {
	curve := c.curve(trial)
	before := curve.State
	curve.State = s
	switch {
	case s == before:
	case before == Complete:
		c.ended.reset()
	case s == Complete:
		c.ended.add(curve)
	}
}

// Forget drops all that a trial reported, which may then start over.
func (c *Curves) Forget(trial int) {
	curve := c.byTrial[trial]
	if curve == nil {
		return
	}
	delete(c.byTrial, trial)
	c.list = slices.DeleteFunc(c.list, func(other *Curve) bool { return other == curve })
	if curve.State == Complete {
		c.ended.reset()
	}
}

// Last returns the last step that a trial reported, with its value, and false
// where it reported none.
func (c *Curves) Last(trial int) (step int, value float64, ok bool) {
	curve := c.byTrial[trial]
	if curve == nil || curve.Len() == 0 {
		return 0, 0, false
	}
	last := curve.Len() - 1
	return curve.steps[last], c.value(curve.losses[last]), true
}

// Reports returns the steps and values that a trial reported, in their order. A
// value that is not finite is returned as the worst infinite one.
func (c *Curves) Reports(trial int) iter.Seq2[int, float64] {
	return func(yield func(step int, value float64) bool) {
		curve := c.byTrial[trial]
		if curve == nil {
			return
		}
		for i, step := range curve.steps {
			if !yield(step, c.value(curve.losses[i])) {
				return
			}
		}
	}
}

func (c *Curves) curve(trial int) *Curve {
	if c.byTrial[trial] == nil {
		c.byTrial[trial] = &Curve{Trial: trial}
		c.list = append(c.list, c.byTrial[trial])
	}
	return c.byTrial[trial]
}

// running returns the curve of a running trial that has reported, or nil.
func (c *Curves) running(trial int) *Curve {
	if curve := c.byTrial[trial]; curve != nil && curve.State == Running && curve.Len() > 0 {
		return curve
	}
	return nil
}

// loss returns the loss of a value; value its inverse.
func (c *Curves) loss(value float64) float64 {
	switch {
	case !finite(value):
		return math.Inf(1)
	case c.direction == Maximize:
		return 0 - value // and never -0
	}
	return value
}

func (c *Curves) value(loss float64) float64 {
	if c.direction == Maximize {
		return 0 - loss
	}
	return loss
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
