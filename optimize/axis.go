// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"diwan.dev/diwan/optimize/internal/decimal"
	"diwan.dev/diwan/optimize/internal/prior"
)

// axis is a parameter made ready for computing. Its coordinate is the value of
// a double or int, and the index in the list of the others.
type axis struct {
	Parameter
	count  uint64             // how many values it has, 0 when there is no end to them
	digits int                // after the point of its values, where it has a step
	top    float64            // the greatest value of a double or int
	prior  prior.Distribution // of a double or int, before rounding
	rank   []int              // by index in the list: where the value stands by size; nil where the list is its own order
	sorted []int              // the inverse of rank
	parent int                // index of the axis on which it depends, -1 for none
	where  []float64          // coordinates of the parent at which it exists, sorted
}

func newAxis(p Parameter) axis {
	a := axis{Parameter: p, parent: -1}
	if p.Kind.listed() {
		a.count = uint64(len(p.List))
		a.sort()
		return a
	}
	a.Step, a.top = p.step(), p.Max
	switch {
	case a.Step > 0:
		a.digits = max(decimal.Digits(p.Min), decimal.Digits(a.Step))
		a.count = a.steps() + 1
		a.top = a.at(float64(a.count - 1))
	case p.Min == p.Max:
		a.count = 1
	}
	a.prior = a.distribution()
	return a
}

// sort ranks the values of a discrete axis by size.
func (a *axis) sort() {
	if a.Kind != KindDiscrete {
		return
	}
	a.sorted = make([]int, len(a.List))
	for i := range a.sorted {
		a.sorted[i] = i
	}
	slices.SortFunc(a.sorted, func(i, j int) int { return cmp.Compare(a.number(i), a.number(j)) })
	a.rank = make([]int, len(a.List))
	for rank, i := range a.sorted {
		a.rank[i] = rank
	}
}

// number returns the value of a discrete axis with an index in its list.
func (a *axis) number(i int) float64 {
	v, err := strconv.ParseFloat(a.List[i], 64)
	if err != nil {
		panic(fmt.Sprintf("optimize: parameter %q: %v", a.Name, err)) // Validate refuses it
	}
	return v
}

// steps returns the largest k with min + k·step ≤ max.
func (a *axis) steps() uint64 {
	k := math.Round((a.Max - a.Min) / a.Step)
	if a.at(k) > a.Max {
		k--
	}
	return uint64(k)
}

// at returns min + k·step, computed in decimal.
func (a *axis) at(k float64) float64 {
	return decimal.Round(a.Min+k*a.Step, a.digits)
}

// edges returns the range that the distribution covers. Each value of an axis
// with a step stands for the numbers half a step around it, so that the first
// and the last are as likely as the others; under a logarithm the first stands
// for no less than half of itself.
func (a *axis) edges() (lo, hi float64) {
	if a.Step == 0 {
		return a.Min, a.Max
	}
	lo, hi = a.Min-a.Step/2, a.top+a.Step/2
	if a.Distribution.positive() {
		lo = math.Max(lo, a.Min/2)
	}
	return lo, hi
}

// distribution returns that of the values before rounding.
func (a *axis) distribution() prior.Distribution {
	lo, hi := a.edges()
	if a.Distribution.positive() {
		lo, hi = math.Log(lo), math.Log(hi)
	}
	switch a.Distribution {
	case Normal:
		return a.normal(lo, hi, a.Min, a.Max, a.Mean)
	case LogNormal:
		return prior.Logarithmic{Of: a.normal(lo, hi, math.Log(a.Min), math.Log(a.Max), math.Log(a.Mean))}
	case LogUniform:
		return prior.Logarithmic{Of: prior.Uniform{Lo: lo, Hi: hi}}
	case ReverseLogUniform:
		return prior.Reverse{Logarithm: prior.Uniform{Lo: lo, Hi: hi}, Min: a.Min, Max: a.top}
	}
	return prior.Uniform{Lo: lo, Hi: hi}
}

// normal returns a normal distribution between lo and hi, whose mean and deviation
// follow from min and max where the user gives none.
func (a *axis) normal(lo, hi, min, max, mean float64) prior.Normal {
	if a.Deviation > 0 {
		return prior.Normal{Lo: lo, Hi: hi, Mean: mean, Deviation: a.Deviation}
	}
	return prior.Normal{Lo: lo, Hi: hi, Mean: min/2 + max/2, Deviation: max/6 - min/6}
}

// ordered reports whether neighboring values are alike.
func (a *axis) ordered() bool { return a.Kind != KindCategorical }

// shaped reports whether the values differ in how likely they are.
func (a *axis) shaped() bool {
	return a.Distribution != "" && a.Distribution != Uniform
}

// coordinate returns the coordinate of the value with index k < count.
func (a *axis) coordinate(k uint64) float64 {
	switch {
	case a.List != nil:
		return float64(k)
	case k == 0:
		return a.Min
	}
	return a.at(float64(k))
}

// index returns the index of the value at a coordinate, for an axis with an
// end to its values.
func (a *axis) index(coordinate float64) uint64 {
	switch {
	case a.List != nil:
		return uint64(coordinate)
	case a.Step == 0:
		return 0
	}
	return uint64(math.Round((coordinate - a.Min) / a.Step))
}

// beside returns the coordinate of the value next to another by size, above it
// or below; at an end, the only one that there is.
func (a *axis) beside(coordinate float64, up bool) float64 {
	k := a.index(coordinate)
	if a.rank != nil {
		k = uint64(a.rank[k])
	}
	if k == 0 || up && k+1 < a.count {
		k++
	} else {
		k--
	}
	if a.sorted != nil {
		k = uint64(a.sorted[k])
	}
	return a.coordinate(k)
}

// format returns the text of the value at a coordinate.
func (a *axis) format(coordinate float64) string {
	switch {
	case a.List != nil:
		return a.List[int(coordinate)]
	case a.Kind == KindInt:
		return strconv.FormatInt(int64(coordinate), 10)
	}
	return decimal.Format(coordinate)
}

// parse returns the coordinate of the value that a text names.
func (a *axis) parse(text string) (float64, error) {
	if a.List != nil {
		if i := slices.Index(a.List, text); i >= 0 {
			return float64(i), nil
		}
		return 0, fmt.Errorf("value %q of parameter %q is not in its list", text, a.Name)
	}
	v, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || math.IsNaN(v):
		return 0, fmt.Errorf("value %q of parameter %q is not a number", text, a.Name)
	case v < a.Min || v > a.Max:
		return 0, fmt.Errorf("value %s of parameter %q is not between %s and %s", text, a.Name, decimal.Format(a.Min), decimal.Format(a.Max))
	case a.count > 0 && a.coordinate(min(a.index(v), a.count-1)) != v:
		return 0, fmt.Errorf("value %s of parameter %q is not %s plus a multiple of its step %s", text, a.Name, decimal.Format(a.Min), decimal.Format(a.Step))
	}
	return v, nil
}

// bounds returns the least and greatest number that an axis has.
func (a *axis) bounds() (least, most float64) {
	if a.Kind == KindDiscrete {
		return a.number(a.sorted[0]), a.number(a.sorted[len(a.sorted)-1])
	}
	return a.Min, a.top
}

// nearest returns the coordinate of the value of an axis that is nearest to
// a number.
func (a *axis) nearest(x float64) float64 {
	switch {
	case a.Kind == KindDiscrete:
		best := 0
		for i := range a.List {
			if math.Abs(a.number(i)-x) < math.Abs(a.number(best)-x) {
				best = i
			}
		}
		return float64(best)
	case a.Step > 0:
		k := math.Round((x - a.Min) / a.Step)
		return a.coordinate(uint64(math.Min(math.Max(k, 0), float64(a.count-1))))
	}
	return math.Min(math.Max(x, a.Min), a.top)
}

// amount returns the number at a coordinate of an axis that has numbers.
func (a *axis) amount(coordinate float64) float64 {
	if a.Kind == KindDiscrete {
		return a.number(int(coordinate))
	}
	return coordinate
}

// quantile returns the coordinate below which lies the part u of the
// distribution, for u from 0 to 1.
func (a *axis) quantile(u float64) float64 {
	if a.count > 0 && !a.shaped() {
		k := min(uint64(u*float64(a.count)), a.count-1)
		if a.sorted != nil {
			k = uint64(a.sorted[k])
		}
		return a.coordinate(k)
	}
	if a.count == 1 {
		return a.Min
	}
	x := a.prior.Quantile(u)
	x = math.Min(math.Max(x, a.Min), a.top)
	if a.Step > 0 {
		k := math.Round((x - a.Min) / a.Step)
		return a.coordinate(min(uint64(k), a.count-1))
	}
	return x
}

// unit returns the part of the distribution that lies below a coordinate, from
// 0 to 1: the inverse of quantile. Where the axis has an end to its values it
// is the middle of those parts for which quantile returns the coordinate.
func (a *axis) unit(coordinate float64) float64 {
	if a.count == 1 {
		return 0.5
	}
	if a.count > 0 && !a.shaped() {
		k := a.index(coordinate)
		if a.rank != nil {
			k = uint64(a.rank[k])
		}
		return (float64(k) + 0.5) / float64(a.count)
	}
	if a.Step == 0 {
		return a.cumulate(coordinate)
	}
	return (a.cumulate(math.Max(coordinate-a.Step/2, a.prior.First())) + a.cumulate(coordinate+a.Step/2)) / 2
}

// border returns where in the unit interval a value with an index by size ends
// and the next begins.
func (a *axis) border(value uint64) float64 {
	if !a.shaped() {
		return float64(value+1) / float64(a.count)
	}
	return a.cumulate(a.coordinate(value) + a.Step/2)
}

// cumulate is the distribution function of the axis before rounding.
func (a *axis) cumulate(x float64) float64 {
	u := a.prior.Cumulate(x)
	if math.IsNaN(u) {
		return 0.5 // the distribution is a single number as far as float64 can tell
	}
	return math.Min(math.Max(u, 0), 1)
}
