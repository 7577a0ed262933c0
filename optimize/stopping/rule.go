// SPDX-License-Identifier: Apache-2.0

package stopping

import (
	"math"
	"strconv"
)

// Rule decides which trials are not worth continuing.
type Rule interface {
	// Judge returns the verdict on a trial after its last report. It is a
	// pure function of the curves. A trial that is not running, or has
	// reported nothing, continues.
	Judge(c *Curves, trial int) Verdict
}

// Verdict is a rule's decision on a trial. The zero Verdict lets it continue.
type Verdict struct {
	Stop bool
	// Reason is a sentence without a period, with the numbers that decided,
	// where Stop is set.
	Reason string
}

// Limiter is a rule that can say in advance what a trial must reach, so that
// it can be judged where it runs, without asking again.
type Limiter interface {
	Rule
	// Limits returns what holds for a trial that starts now, by step.
	Limits(c *Curves) []Limit
}

// Limit is a bound on the values of a trial.
type Limit struct {
	// Step is the first step of the limit, which holds until the step of the
	// next limit on the same side.
	Step int
	// Value is the bound: a trial stops when its value is less than it, where
	// Less is set, or greater.
	Value float64
	Less  bool
	// Best is set where not each value is meant, but the best so far.
	Best bool
}

// limit returns the limit that a loss sets to the best value so far.
func (c *Curves) limit(step int, loss float64) Limit {
	return Limit{Step: step, Value: c.value(loss), Less: c.direction == Maximize, Best: true}
}

// text writes a loss as the value that it is, with the digits that matter.
func (c *Curves) text(loss float64) string { return format(c.value(loss)) }

func format(value float64) string { return strconv.FormatFloat(value, 'g', 6, 64) }

// worse returns the word for being worse.
func (c *Curves) worse() string {
	if c.direction == Maximize {
		return "below"
	}
	return "above"
}

// quantile returns the value below which lies the part q of some sorted losses:
// linear between the two nearest, as Hyndman and Fan's definition 7 ("Sample
// quantiles in statistical packages", 1996), which is that of NumPy.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := int(at)
	low, part := sorted[i], at-float64(i)
	if part == 0 {
		return low
	}
	high := sorted[i+1]
	if low == high || math.IsInf(low, 0) && math.IsInf(high, 0) {
		return high // the worse of two infinities
	}
	return low*(1-part) + high*part
}
