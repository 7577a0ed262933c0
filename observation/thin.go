// SPDX-License-Identifier: Apache-2.0

package observation

import (
	"math"
	"strconv"
)

// Thin keeps, for each metric, only the points that its summary needs: one with
// the minimum, one with the maximum, and the latest, which may be the same.
// They stay in order. [Summarize] returns the same numbers for the points
// before and after, together with any others. It may modify the points.
func Thin(points []Point) []Point {
	needed := map[string]*extremes{}
	for i, p := range points {
		e := needed[p.Metric]
		if e == nil {
			e = &extremes{min: -1, max: -1, latest: i}
			needed[p.Metric] = e
		}
		e.add(points, i)
	}
	kept := points[:0]
	for i, p := range points {
		if e := needed[p.Metric]; i == e.min || i == e.max || i == e.latest {
			kept = append(kept, p)
		}
	}
	return kept
}

// extremes are the indices of the points that a summary needs, -1 for none.
type extremes struct {
	min, max, latest int
	least, greatest  float64
}

func (e *extremes) add(points []Point, i int) {
	if !points[e.latest].Time.After(points[i].Time) {
		e.latest = i
	}
	v, ok := number(points[i].Value)
	if !ok {
		return
	}
	if e.min < 0 || v < e.least {
		e.min, e.least = i, v
	}
	if e.max < 0 || v > e.greatest {
		e.max, e.greatest = i, v
	}
}

// number returns the value of a text that is a number that can be compared.
func number(text string) (v float64, ok bool) {
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil && !math.IsNaN(v)
}
