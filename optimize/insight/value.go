// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"encoding/json"
	"fmt"
	"math"

	"diwan.dev/diwan/optimize"
)

// Axis describes a parameter for plotting.
type Axis struct {
	Name string        `json:"name"`
	Kind optimize.Kind `json:"kind"`
	// Min and Max bound a double or int.
	Min Number `json:"min"`
	Max Number `json:"max"`
	// Log is set where a logarithmic scale spreads the values as the search
	// does.
	Log bool `json:"log"`
	// Values are the values of a parameter of another kind, in its order.
	Values []string `json:"values,omitempty"`
}

func axis(p optimize.Parameter) Axis {
	return Axis{
		Name: p.Name, Kind: p.Kind, Min: Number(p.Min), Max: Number(p.Max), Values: p.List,
		Log: p.Distribution == optimize.LogUniform || p.Distribution == optimize.LogNormal,
	}
}

// Value is a parameter's value: in JSON a number for a numeric parameter, a
// string for others, and null if it does not exist.
type Value struct {
	// Text is the value as it is written, "" where the parameter does not
	// exist.
	Text string
	// Number is the value of a double, int or discrete, 0 for others.
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

// Number is a float64 with a JSON encoding: infinities are the strings
// Infinity and -Infinity, and NaN is null.
type Number float64

// MarshalJSON implements [json.Marshaler].
func (n Number) MarshalJSON() ([]byte, error) {
	switch v := float64(n); {
	case math.IsNaN(v):
		return []byte("null"), nil
	case math.IsInf(v, 1):
		return []byte(`"Infinity"`), nil
	case math.IsInf(v, -1):
		return []byte(`"-Infinity"`), nil
	default:
		return json.Marshal(v)
	}
}

// UnmarshalJSON implements [json.Unmarshaler].
func (n *Number) UnmarshalJSON(data []byte) error {
	switch string(data) {
	case "null":
		*n = Number(math.NaN())
	case `"Infinity"`:
		*n = Number(math.Inf(1))
	case `"-Infinity"`:
		*n = Number(math.Inf(-1))
	default:
		if err := json.Unmarshal(data, (*float64)(n)); err != nil {
			return fmt.Errorf("cannot read number: %w", err)
		}
	}
	return nil
}

var notANumber = Number(math.NaN())

func numbers(values []float64) []Number {
	out := make([]Number, len(values))
	for i, v := range values {
		out[i] = Number(v)
	}
	return out
}
