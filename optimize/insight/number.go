// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"encoding/json"
	"fmt"
	"math"
)

// Number is a float64 that JSON can say: infinite ones are the texts Infinity
// and -Infinity, and what is not a number is null.
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
