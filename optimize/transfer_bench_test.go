// SPDX-License-Identifier: Apache-2.0

package optimize_test

import (
	"fmt"
	"math"
	"testing"

	"diwan.dev/diwan/optimize"
)

// pairwise sums a function of two numbers over the pairs of a row.
func pairwise(f func(x, y float64) float64) func([]float64) float64 {
	return func(row []float64) float64 {
		sum := 0.0
		for i := 0; i+1 < len(row); i += 2 {
			sum += f(row[i], row[i+1])
		}
		return sum
	}
}

// each sums a function of one number over a row.
func each(f func(i int, x float64) float64) func([]float64) float64 {
	return func(row []float64) float64 {
		sum := 0.0
		for i, x := range row {
			sum += f(i, x)
		}
		return sum
	}
}

// transferred are the functions of Golovin et al., "Google Vizier" (2017), §5,
// with minimum 0; those of two numbers are summed over the pairs of ten.
var transferred = []struct {
	name   string
	lo, hi float64
	shifts bool // whether the minimum is moved, because it is in the middle
	f      func([]float64) float64
}{
	{"Beale", -4.5, 4.5, false, pairwise(func(x, y float64) float64 {
		return math.Pow(1.5-x+x*y, 2) + math.Pow(2.25-x+x*y*y, 2) + math.Pow(2.625-x+x*y*y*y, 2)
	})},
	{"Branin", 0, 1, false, pairwise(func(u, v float64) float64 {
		x, y := 15*u-5, 15*v
		return math.Pow(y-5.1/(4*math.Pi*math.Pi)*x*x+5/math.Pi*x-6, 2) + 10*(1-1/(8*math.Pi))*math.Cos(x) + 10 - 0.397887
	})},
	{"Ellipsoid", -5, 5, true, each(func(i int, x float64) float64 { return math.Pow(10, 6*float64(i)/9) * x * x })},
	{"Rastrigin", -5.12, 5.12, true, each(func(_ int, x float64) float64 { return 10 + x*x - 10*math.Cos(2*math.Pi*x) })},
	{"Rosenbrock", -5, 10, true, func(row []float64) float64 {
		sum := 0.0
		for i := range len(row) - 1 {
			sum += 100*math.Pow(row[i+1]-row[i]*row[i], 2) + math.Pow(1-row[i], 2)
		}
		return sum
	}},
	{"Camel", 0, 1, false, pairwise(func(u, v float64) float64 {
		x, y := 6*u-3, 4*v-2
		return (4-2.1*x*x+x*x*x*x/3)*x*x + x*y + (4*y*y-4)*y*y + 1.031628
	})},
	{"Sphere", -5, 5, true, each(func(_ int, x float64) float64 { return x * x })},
	{"Styblinski", -5, 5, false, each(func(_ int, x float64) float64 { return (x*x*x*x-16*x*x+5*x)/2 + 39.16617 })},
}

// BenchmarkTransferVizier repeats the experiment of Vizier's §5.3: 30 searches
// of the same function, of 6 trials each, of which each learns from all before
// it. It reports what is left to the minimum after the last three, as a part of
// what random search leaves in 6 trials; Vizier's figure is 0.37.
func BenchmarkTransferVizier(b *testing.B) {
	var parameters []optimize.Parameter
	for i := range 10 {
		parameters = append(parameters, optimize.Double(fmt.Sprint("x", i), 0, 1))
	}
	space, err := optimize.NewSpace(parameters...)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		mean := 0.0
		for k, f := range transferred {
			shift := space.Unit(record(b, space, optimize.NewRandom(uint64(k)), 1, func(optimize.Point) float64 { return 0 }).Trial(0).Point)
			gap := sequence(b, space, uint64(k), func(p optimize.Point) float64 {
				row := space.Unit(p)
				for i := range row {
					if f.shifts {
						row[i] += 0.24 * (shift[i] - 0.5)
					}
					row[i] = f.lo + (f.hi-f.lo)*row[i]
				}
				return f.f(row)
			})
			b.Logf("%s %.3f", f.name, math.Exp(gap))
			mean += gap / float64(len(transferred))
		}
		b.ReportMetric(math.Exp(mean), "gap/random")
	}
}

// sequence returns the logarithm of the gap after 30 searches as a part of that
// of random search.
func sequence(b *testing.B, space *optimize.Space, seed uint64, objective func(optimize.Point) float64) float64 {
	var sources []*optimize.History
	gap := 0.0
	for study := range uint64(30) {
		seed := 100*seed + study
		base, err := optimize.New("bayesianoptimization", nil, optimize.Problem{Space: space, Seed: seed})
		if err != nil {
			b.Fatal(err)
		}
		s, err := optimize.NewTransfer(base, space, sources, seed, optimize.DefaultTransferConfig())
		if err != nil {
			b.Fatal(err)
		}
		h := record(b, space, s, 6, objective)
		sources = append(sources, h)
		if study >= 27 {
			found, _ := h.Best()
			random, _ := record(b, space, optimize.NewRandom(seed), 6, objective).Best()
			gap += math.Log(found.Value()/random.Value()) / 3
		}
	}
	return gap
}

// BenchmarkTransfer is what a suggestion costs after 50 trials of 10
// parameters, with ten earlier searches of 100.
func BenchmarkTransfer(b *testing.B) {
	var parameters []optimize.Parameter
	for i := range 10 {
		parameters = append(parameters, optimize.Double(fmt.Sprint("x", i), 0, 1))
	}
	space, err := optimize.NewSpace(parameters...)
	if err != nil {
		b.Fatal(err)
	}
	objective := func(p optimize.Point) float64 { return transferred[6].f(space.Unit(p)) }
	var sources []*optimize.History
	for seed := range uint64(10) {
		sources = append(sources, record(b, space, optimize.NewRandom(seed), 100, objective))
	}
	c := optimize.DefaultTransferConfig()
	c.Half = 1e9
	s, err := optimize.NewTransfer(optimize.NewRandom(1), space, sources, 1, c)
	if err != nil {
		b.Fatal(err)
	}
	h := record(b, space, s, 50, objective)
	for b.Loop() {
		if _, err := s.Sample(b.Context(), h); err != nil {
			b.Fatal(err)
		}
	}
}
