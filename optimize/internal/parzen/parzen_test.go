// SPDX-License-Identifier: Apache-2.0

package parzen

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func TestBelow(t *testing.T) {
	t.Parallel()
	for x := -10.0; x < 10; x += 0.0137 {
		if got, want := below(x), math.Erfc(-x/math.Sqrt2)/2; math.Abs(got-want) > 1e-12 {
			t.Fatalf("below(%v) = %v, want %v", x, got, want)
		}
	}
	for x, want := range map[float64]float64{math.Inf(-1): 0, math.Inf(1): 1, 0: 0.5} {
		if got := below(x); got != want {
			t.Errorf("below(%v) = %v, want %v", x, got, want)
		}
	}
}

func TestExp(t *testing.T) {
	t.Parallel()
	for x := -float64(expReach); x <= 0; x += 0.00137 {
		if got, want := exp(x), math.Exp(x); math.Abs(got-want) > 1e-10*want {
			t.Fatalf("exp(%v) = %v, want %v", x, got, want)
		}
	}
}

// Drawing the part u must give the number below which that part lies.
func TestTruncated(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		mean := rapid.Float64Range(-0.5, 1.5).Draw(rt, "mean")
		deviation := rapid.Float64Range(0.1, 2).Draw(rt, "deviation")
		u := rapid.Float64Range(1e-6, 1-1e-6).Draw(rt, "u")
		x := truncated(mean, deviation, 0, 1, u)
		part := within(mean, 1/deviation, 0, x) / within(mean, 1/deviation, 0, 1)
		if !(x >= 0 && x <= 1) || math.Abs(part-u) > 1e-6 {
			rt.Fatalf("truncated = %v, below which lies %v: want %v", x, part, u)
		}
	})
	for _, mean := range []float64{-1e9, 1e9} {
		if x, want := truncated(mean, 1e-3, 0, 1, 0.3), math.Min(math.Max(mean, 0), 1); x != want {
			t.Errorf("around %v: got %v, want %v", mean, x, want)
		}
	}
}

func TestNeighbours(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		at, want []float64
	}{
		"farther neighbour, inner one at the ends": {[]float64{0.9, 0.1, 0.6, 0.2}, []float64{0.3, 1.0 / 6, 0.4, 0.4}},
		"one row reaches to the farther end":       {[]float64{0.3}, []float64{0.7}},
		"equal rows are as wide as the bound":      {[]float64{0.5, 0.5, 0.5}, []float64{0.2, 0.2, 0.2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := make([]float64, len(test.at))
			neighbours(test.at, got, make([]placed, len(test.at)))
			if diff := cmp.Diff(test.want, got, cmpopts.EquateApprox(0, 1e-12)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The paper's mixture written out, with the library's error function.
func TestLogDensityFormula(t *testing.T) {
	t.Parallel()
	axes := []Axis{{}, {Edges: Even(5)}, {Choices: 3}}
	columns := [][]float64{{0.2, 0.7, 0.75}, {0.1, 0.5, 0.9}, {1.0 / 6, 0.5, 0.5}}
	weights := []float64{1, 2, 0.5}
	m := Fit(axes, columns, weights, 1, Width{})
	cdf := func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
	widths := [][]float64{{0.5, 0.5, 0.2}, {0.4, 0.4, 0.4}}
	hit, miss := 3*1.25/1.75, 3*0.25/1.75
	for _, x := range [][]float64{{0.25, 0.3, 0.5}, {0.99, 0.9, 1.0 / 6}, {0.5, 0.1, 5.0 / 6}} {
		want := 1.0
		for i := range weights {
			s, at := widths[0][i], columns[0][i]
			kernel := math.Exp(-(x[0]-at)*(x[0]-at)/(2*s*s)) / (s * math.Sqrt(2*math.Pi)) / (cdf((1-at)/s) - cdf(-at/s))
			s, at = widths[1][i], columns[1][i]
			kernel *= (cdf((x[1]+0.1-at)/s) - cdf((x[1]-0.1-at)/s)) / 0.2 / (cdf((1-at)/s) - cdf(-at/s))
			if x[2] == columns[2][i] {
				kernel *= hit
			} else {
				kernel *= miss
			}
			want += weights[i] * kernel
		}
		want = math.Log(want / 4.5)
		if got := m.LogDensity(x); math.Abs(got-want) > 1e-9 {
			t.Errorf("LogDensity(%v) = %v, want %v", x, got, want)
		}
	}
}

// drawMixture draws a mixture on some axes.
func drawMixture(rt *rapid.T, axes []Axis, w Width) *Mixture {
	n := rapid.IntRange(0, 12).Draw(rt, "rows")
	columns := make([][]float64, len(axes))
	for j := range axes {
		columns[j] = rapid.SliceOfN(rapid.Float64Range(0, 1), n, n).Draw(rt, "column")
		for i, u := range columns[j] {
			if a := &axes[j]; a.Choices > 0 || a.Edges != nil {
				columns[j][i] = a.middle(a.cell(u))
			}
		}
	}
	weights := rapid.SliceOfN(rapid.Float64Range(0.1, 3), n, n).Draw(rt, "weights")
	return Fit(axes, columns, weights, rapid.Float64Range(0.1, 2).Draw(rt, "prior"), w)
}

func TestIntegratesToOne(t *testing.T) {
	t.Parallel()
	const grid = 280 // a multiple of each axis' cells
	for name, axis := range map[string]Axis{
		"continuous": {},
		"grain":      {Grain: 0.1},
		"even":       {Edges: Even(7)},
		"uneven":     {Edges: []float64{0, 0.5, 0.7, 0.7, 0.95, 1}},
		"choices":    {Choices: 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) {
				m := drawMixture(rt, []Axis{axis, {Choices: 2}}, Width{})
				sum := 0.0
				for i := range grid {
					for _, c := range []float64{0.25, 0.75} {
						sum += math.Exp(m.LogDensity([]float64{(float64(i) + 0.5) / grid, c})) / (2 * grid)
					}
				}
				if math.Abs(sum-1) > 2e-3 {
					rt.Fatalf("density integrates to %v", sum)
				}
			})
		})
	}
}

// Kernels cut off at the border make the joint density integrate to one only
// nearly; away from it they do exactly.
func TestJointIntegratesToOne(t *testing.T) {
	t.Parallel()
	columns := [][]float64{{0.4, 0.45, 0.5, 0.55, 0.6}, {0.42, 0.43, 0.52, 0.56, 0.61}}
	m := Fit(make([]Axis, 2), columns, []float64{1, 1, 1, 1, 1}, 1, Width{Joint: true})
	const grid = 400
	sum := 0.0
	for i := range grid {
		for j := range grid {
			sum += math.Exp(m.LogDensity([]float64{(float64(i) + 0.5) / grid, (float64(j) + 0.5) / grid}))
		}
	}
	if sum /= grid * grid; math.Abs(sum-1) > 1e-6 {
		t.Errorf("density integrates to %v", sum)
	}
	along, across := m.LogDensity([]float64{0.6, 0.6}), m.LogDensity([]float64{0.6, 0.4})
	if along < across+1 {
		t.Errorf("log density %v along the rows and %v across them: want kernels that lie along", along, across)
	}
}

// What is drawn has the density that is computed: the mean over draws of
// 1/density over a set is the volume of the set.
func TestDrawHasDensity(t *testing.T) {
	t.Parallel()
	axes := []Axis{{}, {Edges: Even(10)}, {Choices: 3}, {Edges: Even(4)}}
	columns := [][]float64{
		{0.3, 0.5, 0.55, 0.6, 0.4}, {0.25, 0.45, 0.55, 0.65, 0.35},
		{1.0 / 6, 0.5, 0.5, 5.0 / 6, 0.5}, {0.125, 0.375, 0.375, 0.625, 0.375},
	}
	for name, w := range map[string]Width{"neighbours": {}, "factor": {Factor: 0.7}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := Fit(axes, columns, []float64{1, 2, 1, 0.5, 1}, 1, w)
			u := source(7)
			const draws = 200_000
			x, volumes := make([]float64, len(axes)), make([]float64, 8)
			for range draws {
				m.Draw(u, x)
				octant := 0
				for j, border := range []float64{0.5, 0.5, 0.6} {
					if x[j] > border {
						octant |= 1 << j
					}
				}
				volumes[octant] += math.Exp(-m.LogDensity(x)) / draws
			}
			for octant, got := range volumes {
				want := 0.25 * 2 / 3
				if octant&4 != 0 {
					want = 0.25 / 3
				}
				if math.Abs(got-want) > 0.06*want {
					t.Errorf("octant %03b has the volume %v: want %v", octant, got, want)
				}
			}
		})
	}
}

// source returns uniform random numbers.
func source(state uint64) func() float64 {
	return func() float64 {
		state = state*6364136223846793005 + 1442695040888963407
		return (float64(state>>12) + 0.5) / (1 << 52)
	}
}

// Whatever the rows, draws are in the cube and on their cells, and densities
// are numbers.
func TestDrawAnywhere(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		axes := rapid.SliceOfN(rapid.SampledFrom([]Axis{
			{}, {Grain: 0.01}, {Edges: Even(3)}, {Edges: Even(20)}, {Edges: []float64{0, 0, 0.3, 1, 1}}, {Choices: 1}, {Choices: 5},
		}), 1, 6).Draw(rt, "axes")
		m := drawMixture(rt, axes, Width{Joint: rapid.Bool().Draw(rt, "joint")})
		u, x := source(rapid.Uint64().Draw(rt, "seed")), make([]float64, len(axes))
		for range 10 {
			m.Draw(u, x)
			for j := range axes {
				a := &axes[j]
				if !(x[j] >= 0 && x[j] <= 1) {
					rt.Fatalf("drew %v", x)
				}
				if (a.Choices > 0 || a.Edges != nil) && x[j] != a.middle(a.cell(x[j])) {
					rt.Fatalf("drew %v, which is not the middle of a cell of axis %d", x[j], j)
				}
			}
			if v := m.LogDensity(x); math.IsNaN(v) || math.IsInf(v, 0) {
				rt.Fatalf("LogDensity(%v) = %v", x, v)
			}
		}
	})
}

func TestManyAxes(t *testing.T) {
	t.Parallel()
	const d, n = 1000, 20
	u := source(1)
	columns := make([][]float64, d)
	for j := range columns {
		for range n {
			columns[j] = append(columns[j], u())
		}
	}
	for _, w := range []Width{{}, {Joint: true}} {
		m := Fit(make([]Axis, d), columns, slices.Repeat([]float64{1}, n), 1, w)
		x := make([]float64, d)
		m.Draw(u, x)
		if v := m.LogDensity(x); math.IsNaN(v) || math.IsInf(v, 0) {
			t.Errorf("%+v: LogDensity = %v", w, v)
		}
	}
}

// Equal rows on a line leave no covariance of their own.
func TestDegenerateRows(t *testing.T) {
	t.Parallel()
	column := slices.Repeat([]float64{0.5}, 10)
	m := Fit(make([]Axis, 3), [][]float64{column, column, column}, slices.Repeat([]float64{1}, 10), 1, Width{Joint: true})
	if v := m.LogDensity([]float64{0.5, 0.5, 0.5}); !(v > 3) || math.IsInf(v, 0) {
		t.Errorf("log density at ten equal rows is %v: want a finite peak", v)
	}
}
