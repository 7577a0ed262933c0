// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"fmt"
	"slices"

	"diwan.dev/diwan/optimize"
)

// Table is the complete trials of a search, ready to be drawn as parallel
// coordinates, as scatter plots of any two columns, or by rank.
type Table struct {
	Axes []Axis `json:"axes"`
	Rows []Row  `json:"rows"`
}

// Row is a complete trial.
type Row struct {
	Trial int `json:"trial"`
	// Values are the parameters' values, in the order of the axes.
	Values []Value `json:"values"`
	// Unit is where the values are along their axes as the search sees them,
	// from 0 to 1, null where a parameter does not exist.
	Unit []Number `json:"unit"`
	// Objectives are the values of the objectives, in their own units.
	Objectives []Number `json:"objectives"`
	// Ranks are the places of the trial by each objective, from 0 for the
	// best to 1 for the worst; equal values share the mean of their places.
	Ranks    []float64 `json:"ranks"`
	Feasible bool      `json:"feasible"`
}

// Tabulate returns the table of a search.
func Tabulate(h *optimize.History) Table {
	var t Table
	space := h.Space()
	for i := range space.Len() {
		t.Axes = append(t.Axes, axis(space.Parameter(i)))
	}
	trials := complete(h)
	for _, trial := range trials {
		row := Row{Trial: trial.Index, Objectives: numbers(trial.Values), Feasible: trial.Feasible(), Unit: numbers(space.Unit(trial.Point))}
		for i := range space.Len() {
			row.Values = append(row.Values, value(trial.Point, space.Parameter(i)))
		}
		t.Rows = append(t.Rows, row)
	}
	for k, d := range h.Directions() {
		for i, rank := range ranks(trials, k, d) {
			t.Rows[i].Ranks = append(t.Rows[i].Ranks, rank)
		}
	}
	return t
}

func ranks(trials []optimize.Trial, objective int, d optimize.Direction) []float64 {
	order := make([]int, len(trials))
	for i := range order {
		order[i] = i
	}
	value := func(i int) float64 { return trials[i].Values[objective] }
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case d.Better(value(a), value(b)):
			return -1
		case d.Better(value(b), value(a)):
			return 1
		}
		return 0
	})
	ranks := make([]float64, len(trials))
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && value(order[to]) == value(order[from]) {
			to++
		}
		for _, i := range order[from:to] {
			ranks[i] = float64(from+to-1) / 2 / float64(max(len(order)-1, 1))
		}
		from = to
	}
	return ranks
}

// Slice is one parameter against one objective.
type Slice struct {
	Axis   Axis         `json:"axis"`
	Points []SlicePoint `json:"points"`
}

// SlicePoint is a complete trial that has the parameter.
type SlicePoint struct {
	Trial     int    `json:"trial"`
	Value     Value  `json:"value"`
	Objective Number `json:"objective"`
}

// SliceOf returns the slice of a parameter and an objective.
func SliceOf(h *optimize.History, parameter string, objective int) (Slice, error) {
	i, err := index(h.Space(), parameter)
	if err == nil {
		err = checkObjective(h, objective)
	}
	if err != nil {
		return Slice{}, fmt.Errorf("cannot compute slice: %w", err)
	}
	p := h.Space().Parameter(i)
	s := Slice{Axis: axis(p)}
	for _, t := range complete(h) {
		if v := value(t.Point, p); v.Exists {
			s.Points = append(s.Points, SlicePoint{t.Index, v, Number(t.Values[objective])})
		}
	}
	return s, nil
}
