// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"math"
	"testing"
)

// TestSurrogate checks predictions, in the objective's unit and with its sign.
func TestSurrogate(t *testing.T) {
	t.Parallel()
	space, err := NewSpace(Double("x", 0, 10), Categorical("c", "a", "b"))
	if err != nil {
		t.Fatal(err)
	}
	f := func(p Point) float64 {
		if p.Text("c") == "a" {
			return 100 * math.Sin(p.Float("x")/3)
		}
		return 50 + p.Float("x")
	}
	h := NewHistory(space, Maximize)
	if _, ok := newSurrogate(h, 0); ok {
		t.Error("a history without results has a model")
	}
	for i := range 30 {
		p := space.Quantile([]float64{(float64(i) + 0.5) / 30, float64(i%2) / 2})
		if err := h.Tell(h.Add(p), Values(f(p))); err != nil {
			t.Fatal(err)
		}
	}
	s, ok := newSurrogate(h, 0)
	if !ok {
		t.Fatal("a history with results has no model")
	}
	for _, u := range [][]float64{{0.33, 0}, {0.71, 0.5}} {
		p := space.Quantile(u)
		if mean, deviation := s.predict(p); math.Abs(mean+f(p)) > 5 || !(deviation > 0) || deviation > 20 {
			t.Errorf("loss at %v is predicted to be %v ± %v: want about %v", p, mean, deviation, -f(p))
		}
	}
}
