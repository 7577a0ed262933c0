// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"encoding/json"

	"diwan.dev/diwan/optimize"
)

// Axis tells how to draw a parameter.
type Axis struct {
	Name string        `json:"name"`
	Kind optimize.Kind `json:"kind"`
	// Min and Max bound a double or int.
	Min Number `json:"min"`
	Max Number `json:"max"`
	// Log is set where a logarithmic scale spreads the values as the search
	// does.
	Log bool `json:"log"`
	// Values are those of a parameter of another kind, in its order.
	Values []string `json:"values,omitempty"`
}

func axis(p optimize.Parameter) Axis {
	return Axis{
		Name: p.Name, Kind: p.Kind, Min: Number(p.Min), Max: Number(p.Max), Values: p.List,
		Log: p.Distribution == optimize.LogUniform || p.Distribution == optimize.LogNormal,
	}
}

// Value is that of a parameter: in JSON a number where the parameter is one of
// numbers, a text where it is not, and null where it does not exist.
type Value struct {
	// Text is the value as it is written, "" where the parameter does not
	// exist.
	Text string
	// Number is that of a double, int or discrete, 0 for others.
	Number float64
	// Exists is false for a parameter that the point does not have.
	Exists  bool
	numeric bool
}

func value(point optimize.Point, p optimize.Parameter) Value {
	if !point.Active(p.Name) {
		return Value{}
	}
	v := Value{Text: point.Text(p.Name), Exists: true, numeric: p.Kind != optimize.KindCategorical && p.Kind != optimize.KindOrdered}
	if v.numeric {
		v.Number = point.Float(p.Name)
	}
	return v
}

// MarshalJSON implements [json.Marshaler].
func (v Value) MarshalJSON() ([]byte, error) {
	switch {
	case !v.Exists:
		return []byte("null"), nil
	case v.numeric:
		return json.Marshal(v.Number)
	}
	return json.Marshal(v.Text)
}
