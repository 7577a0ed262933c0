// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// axis is a parameter made ready for computing. Its coordinate is the value of
// a double or int, and the index in the list of the others.
type axis struct {
	Parameter
	count  uint64    // how many values it has, 0 when there is no end to them
	digits int       // after the point of its values, where it has a step
	lo, hi float64   // range of the quantile function before rounding, logarithms where the distribution is logarithmic
	top    float64   // the greatest value of a double or int
	rank   []int     // by index in the list: where the value stands by size; nil where the list is its own order
	sorted []int     // the inverse of rank
	parent int       // index of the axis on which it depends, -1 for none
	where  []float64 // coordinates of the parent at which it exists, sorted
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
		a.digits = max(decimals(p.Min), decimals(a.Step))
		a.count = a.steps() + 1
		a.top = a.at(float64(a.count - 1))
	case p.Min == p.Max:
		a.count = 1
	}
	a.lo, a.hi = a.edges()
	if p.Distribution.positive() {
		a.lo, a.hi = math.Log(a.lo), math.Log(a.hi)
	}
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
	return roundTo(a.Min+k*a.Step, a.digits)
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

// ordered reports whether neighbouring values are alike.
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

// format returns the text of the value at a coordinate.
func (a *axis) format(coordinate float64) string {
	switch {
	case a.List != nil:
		return a.List[int(coordinate)]
	case a.Kind == KindInt:
		return strconv.FormatInt(int64(coordinate), 10)
	}
	return formatFloat(coordinate)
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
		return 0, fmt.Errorf("value %s of parameter %q is not between %s and %s", text, a.Name, formatFloat(a.Min), formatFloat(a.Max))
	case a.count > 0 && a.coordinate(min(a.index(v), a.count-1)) != v:
		return 0, fmt.Errorf("value %s of parameter %q is not %s plus a multiple of its step %s", text, a.Name, formatFloat(a.Min), formatFloat(a.Step))
	}
	return v, nil
}
