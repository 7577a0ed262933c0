// SPDX-License-Identifier: Apache-2.0

package cma

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestModelExact checks that a polynomial is found from its values, and its
// minimum from that.
func TestModelExact(t *testing.T) {
	t.Parallel()
	numbers := rand.New(rand.NewPCG(1, 2))
	for _, tc := range []struct {
		form  terms
		f     func(x []float64) float64
		least []float64
	}{
		{linear, func(x []float64) float64 { return 3 + 2*x[0] - x[1] + 0.5*x[2] }, []float64{0.1, 0.9, 0.1}},
		{squares, func(x []float64) float64 {
			return (x[0]-0.3)*(x[0]-0.3) + 5*(x[1]-0.6)*(x[1]-0.6) - x[2]*x[2]
		}, []float64{0.3, 0.6, 0.9}},
		{products, func(x []float64) float64 {
			a, b, c := x[0]-0.3, x[1]-0.6, x[2]-0.5
			return 2*a*a + b*b + c*c + 1.5*a*b - 0.5*b*c
		}, []float64{0.3, 0.6, 0.5}},
	} {
		var samples []sample
		for range 2 * tc.form.count(3) {
			x := []float64{numbers.Float64(), numbers.Float64(), numbers.Float64()}
			samples = append(samples, sample{x, 0, tc.f(x)})
		}
		merit, values := newMerit(samples), make([]float64, len(samples))
		for i, s := range samples {
			values[i] = merit.of(s)
		}
		m := fit(samples, values, tc.form)
		for range 20 {
			x := []float64{numbers.Float64(), numbers.Float64(), numbers.Float64()}
			_, got := merit.at(m.predict(x))
			if want := tc.f(x); math.Abs(got-want) > 1e-5 {
				t.Fatalf("form %d: value at %v is %v: want %v", tc.form, x, got, want)
			}
		}
		// The box is from 0.1 to 0.9.
		d := NewDistribution([]float64{0.5, 0.5, 0.5}, 0.2, 4, true, Grid{})
		for i, x := range m.optimum(d) {
			if math.Abs(x-tc.least[i]) > 1e-4 {
				t.Errorf("form %d: coordinate %d of the optimum is %v: want %v", tc.form, i, x, tc.least[i])
			}
		}
	}
}

// TestMerit checks the order of all kinds of results.
func TestMerit(t *testing.T) {
	t.Parallel()
	inf := math.Inf(1)
	samples := []sample{{nil, 0, -inf}, {nil, 0, -1e308}, {nil, 0, 0}, {nil, 0, 1e308}, {nil, 1, -1e308}, {nil, 4, 0}, {nil, inf, inf}}
	s := newMerit(samples)
	for i, want := range []float64{0, 0, 0.5, 1, 1.25, 2, 2} {
		if got := s.of(samples[i]); got != want {
			t.Errorf("sample %d is at %v: want %v", i, got, want)
		}
	}
	for place, want := range map[float64][2]float64{0: {0, -1e308}, 0.5: {0, 0}, 1: {0, 1e308}, 1.25: {1, 1e308}} {
		if violation, value := s.at(place); violation != want[0] || value != want[1] {
			t.Errorf("at %v are violation %v and value %v: want %v", place, violation, value, want)
		}
	}
	if got := newMerit(samples[6:]).of(samples[6]); got != 1 {
		t.Errorf("a failure alone is at %v: want 1", got)
	}
}

func TestKendall(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		a, b []float64
		want float64
	}{
		{[]float64{1, 2, 3, 4}, []float64{10, 20, 30, 40}, 1},
		{[]float64{1, 2, 3, 4}, []float64{4, 3, 2, 1}, -1},
		{[]float64{1, 2, 3, 4}, []float64{1, 2, 4, 3}, 2. / 3},
	} {
		if got := kendall(tc.a, tc.b); math.Abs(got-tc.want) > 1e-12 {
			t.Errorf("kendall(%v, %v) = %v: want %v", tc.a, tc.b, got, tc.want)
		}
	}
}
