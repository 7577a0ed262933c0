// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"fmt"
	"math"
	"strconv"
)

// Declaration is a parameter as a manifest declares it, in text. Its fields
// are those of Katib's feasible space.
type Declaration struct {
	Name         string
	Kind         Kind
	Min, Max     string // numbers, for double and int
	Step         string // a number, or "" for none; for double and int
	Distribution Distribution
	List         []string // for discrete and categorical
}

// Parameter returns the parameter that the declaration declares. As in Katib,
// a logarithmic distribution from a min that is not greater than 0 begins at
// 1e-10 for a double and at 1 for an int, a step of 0 is none, and a value
// that a list has twice counts once.
func (d Declaration) Parameter() (Parameter, error) {
	p := Parameter{Name: d.Name, Kind: d.Kind, Distribution: d.Distribution}
	if d.Kind == KindDouble || d.Kind == KindInt {
		for _, field := range []struct {
			name, text string
			into       *float64
		}{{"min", d.Min, &p.Min}, {"max", d.Max, &p.Max}, {"step", d.Step, &p.Step}} {
			if field.name == "step" && field.text == "" {
				continue
			}
			v, err := parseNumber(field.text)
			if err != nil {
				return Parameter{}, fmt.Errorf("parameter %q: %s is %w", d.Name, field.name, err)
			}
			*field.into = v
		}
		if d.Distribution.positive() && p.Min <= 0 {
			p.Min = map[Kind]float64{KindDouble: 1e-10, KindInt: 1}[d.Kind]
		}
	}
	seen := make(map[string]bool, len(d.List))
	for _, value := range d.List {
		if !seen[value] {
			p.List, seen[value] = append(p.List, value), true
		}
	}
	return p, p.Validate()
}

func parseNumber(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%q: want a finite number", text)
	}
	return v, nil
}
