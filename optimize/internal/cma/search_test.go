// SPDX-License-Identifier: Apache-2.0

package cma

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func config(n int, seed uint64) Config {
	mean := make([]float64, n)
	for i := range mean {
		mean[i] = 0.3
	}
	return Config{
		Mean: mean, Sigma: 0.2, Size: Population(n),
		Normal: func(generation, k int, z []float64) {
			numbers := rand.New(rand.NewPCG(seed, uint64(generation)<<32+uint64(k)))
			for i := range z {
				z[i] = numbers.NormFloat64()
			}
		},
		Round: func(u []float64) []float64 { return slices.Clone(u) },
	}
}

func sphere(x []float64) (f float64) {
	for _, v := range x {
		f += (v - 0.5) * (v - 0.5)
	}
	return f
}

func ellipsoid(x []float64) (f float64) {
	for i, v := range x {
		f += math.Pow(10, 6*float64(i)/float64(len(x)-1)) * (v - 0.5) * (v - 0.5)
	}
	return f
}

// rosenbrock has its minimum at 0.5, in the middle of the cube.
func rosenbrock(x []float64) (f float64) {
	for i := range len(x) - 1 {
		a, b := 2*x[i], 2*x[i+1]
		f += 100*(b-a*a)*(b-a*a) + (1-a)*(1-a)
	}
	return f
}

// evaluations returns how many evaluations a search needs to come below 10⁻¹⁰,
// or limit.
func evaluations(c Config, f func([]float64) float64, limit int) int {
	s := NewSearch(c)
	for n := range limit {
		x := next(s)
		value := f(x)
		if value < 1e-10 {
			return n + 1
		}
		s.Tell(x, value, 0)
	}
	return limit
}

// left returns the candidates of the generation that are not evaluated yet.
func left(s *Search) (points [][]float64) {
	for u, place := s.Candidate(0); u != nil; u, place = s.Candidate(place) {
		points = append(points, u)
	}
	return points
}

func next(s *Search) []float64 {
	u, _ := s.Candidate(0)
	return u
}

func median(values []int) int {
	slices.Sort(values)
	return values[len(values)/2]
}

// TestEvaluations holds the strategy, without its model, to pycma 4.5.0, which
// takes the median number of evaluations given over eleven seeds:
//
//	cma.CMAEvolutionStrategy([.3]*n, .2, {'seed': s, 'ftarget': 1e-10}).optimize(f)
//
// and the model to what it is for: a third of them, or less.
func TestEvaluations(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		f     func([]float64) float64
		n     int
		pycma int
	}{
		{"sphere", sphere, 5, 664},
		{"sphere", sphere, 10, 1470},
		{"ellipsoid", ellipsoid, 5, 1488},
		{"ellipsoid", ellipsoid, 10, 4000},
		{"rosenbrock", rosenbrock, 5, 1648},
		{"rosenbrock", rosenbrock, 10, 5070},
	} {
		t.Run(fmt.Sprint(tc.name, tc.n), func(t *testing.T) {
			t.Parallel()
			var plain, modelled []int
			for seed := range uint64(11) {
				c := config(tc.n, seed)
				plain = append(plain, evaluations(c, tc.f, 30000))
				c.Model = true
				modelled = append(modelled, evaluations(c, tc.f, 30000))
			}
			t.Logf("%d evaluations, %d with the model; pycma %d", median(plain), median(modelled), tc.pycma)
			if got := float64(median(plain)); got > 1.2*float64(tc.pycma) {
				t.Errorf("%v evaluations: want at most a fifth more than pycma's %d", got, tc.pycma)
			}
			if got := median(modelled); 3*got > 2*tc.pycma {
				t.Errorf("%v evaluations with the model: want at most two thirds of pycma's %d", got, tc.pycma)
			}
		})
	}
}

// TestMonotone checks that nothing but the order of values matters without the
// model.
func TestMonotone(t *testing.T) {
	t.Parallel()
	one, other := NewSearch(config(4, 1)), NewSearch(config(4, 1))
	for range 200 {
		x, y := next(one), next(other)
		if diff := cmp.Diff(x, y); diff != "" {
			t.Fatalf("points differ: %s", diff)
		}
		one.Tell(x, sphere(x), 0)
		other.Tell(y, math.Log(sphere(y)), 0)
	}
}

// TestRestarts checks that each strategy leaves a local minimum for the global
// one, and that populations grow as they should.
func TestRestarts(t *testing.T) {
	t.Parallel()
	traps := func(x []float64) float64 { // global minimum 0 at 0.85, local ones elsewhere
		f := 0.0
		for _, v := range x {
			z := 8 * (v - 0.85)
			f += z*z/8 - math.Cos(2*math.Pi*z/1.6) + 1
		}
		return f
	}
	for _, restart := range []Restart{IPOP, BIPOP} {
		c := config(3, 4)
		c.Restart, c.Sigma = restart, 0.1
		s, best, sizes := NewSearch(c), math.Inf(1), map[int]bool{}
		for range 10000 {
			x := next(s)
			best = math.Min(best, traps(x))
			sizes[s.dist.Size()] = true
			s.Tell(x, traps(x), 0)
		}
		if best > 0.2 { // the least local minimum is above 0.3
			t.Errorf("restart %d: best value is %v: want less than that of any local minimum", restart, best)
		}
		for _, size := range []int{c.Size, 2 * c.Size, 4 * c.Size} {
			if !sizes[size] {
				t.Errorf("restart %d: no population of %d", restart, size)
			}
		}
	}
}

// TestMargin checks that integers are found although the others converge
// at once.
func TestMargin(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		c := config(4, seed)
		borders := make([]float64, 49) // 50 values
		for k := range borders {
			borders[k] = float64(k+1) / 50
		}
		c.Grid = Grid{Borders: [][]float64{nil, nil, borders, borders}, Margin: 1 / float64(4*c.Size)}
		c.Round = func(u []float64) []float64 {
			r := slices.Clone(u)
			for i := 2; i < 4; i++ {
				r[i] = (math.Min(math.Floor(50*u[i]), 49) + 0.5) / 50
			}
			return r
		}
		f := func(x []float64) float64 {
			r := c.Round(x)
			k, l := math.Floor(50*r[2]), math.Floor(50*r[3])
			return 1e3*(r[0]-0.4)*(r[0]-0.4) + 1e3*(r[1]-0.6)*(r[1]-0.6) + 1e-3*math.Abs(k-40) + 1e-3*math.Abs(l-7)
		}
		s, best := NewSearch(c), math.Inf(1)
		for range 4000 {
			x := next(s)
			best = math.Min(best, f(x))
			s.Tell(c.Round(x), f(x), 0)
		}
		if best > 5e-4 {
			t.Errorf("seed %d: best value is %v: want the whole numbers found", seed, best)
		}
	}
}

// TestCube checks points for whatever is told: they are in the cube, and what
// is cloned goes on as the original.
func TestCube(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(rt, "n")
		c := config(n, rapid.Uint64().Draw(rt, "seed"))
		c.Separable, c.Model = rapid.Bool().Draw(rt, "separable"), rapid.Bool().Draw(rt, "model")
		c.Restart = Restart(rapid.IntRange(0, 2).Draw(rt, "restart"))
		s := NewSearch(c)
		for k := range rapid.IntRange(1, 150).Draw(rt, "results") {
			points := append(left(s), s.Extra(k))
			if len(points) == 1 {
				rt.Fatal("no candidates are left, but the generation goes on")
			}
			for _, p := range points {
				if !isInside(p) || slices.ContainsFunc(p, math.IsNaN) {
					rt.Fatalf("point %v is outside the cube", p)
				}
			}
			value := rapid.OneOf(rapid.Float64Range(-1, 1), rapid.Just(0.0), rapid.Just(math.NaN()), rapid.Just(1e308), rapid.Just(-1e308),
				rapid.Just(math.Inf(1)), rapid.Just(math.Inf(-1))).Draw(rt, "value")
			x, clone := rapid.SampledFrom(points).Draw(rt, "point"), s.Clone()
			s.Tell(x, value, rapid.SampledFrom([]float64{0, 0, 1}).Draw(rt, "violation"))
			again := clone.Clone()
			clone.Tell(x, value, 0)
			again.Tell(x, value, 0)
			if diff := cmp.Diff(left(clone), left(again)); diff != "" {
				rt.Fatalf("a clone goes another way: %s", diff)
			}
		}
	})
}

func TestFold(t *testing.T) {
	t.Parallel()
	for x, want := range map[float64]float64{0: 0, 1: 1, 0.25: 0.25, -0.25: 0.25, 1.25: 0.75, 2.25: 0.25, -1.25: 0.75, 3.5: 0.5} {
		if got := fold(x); got != want {
			t.Errorf("fold(%v) = %v: want %v", x, got, want)
		}
	}
}
