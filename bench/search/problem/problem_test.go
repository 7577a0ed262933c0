// SPDX-License-Identifier: Apache-2.0

package problem_test

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"diwan.dev/diwan/bench/search/problem"
)

// everything returns problems of all families, with models that cost nothing.
func everything() []*problem.Problem {
	models := func(context.Context, string, int, map[string]string) (float64, error) { return 1, nil }
	var problems []*problem.Problem
	for _, family := range problem.Families {
		problems = append(problems, problem.Family(family, []int{2, 5, 10, 20}, 1, 2, models)...)
	}
	return problems
}

// TestOptimum checks that the solution has the optimum, and that neither
// random points nor steps from the solution are better.
func TestOptimum(t *testing.T) {
	t.Parallel()
	for _, p := range everything() {
		if math.IsNaN(p.Optimum) {
			continue
		}
		numbers := rand.New(rand.NewPCG(1, 2))
		value := func(x problem.Point) float64 {
			v, err := p.Evaluate(t.Context(), x, numbers)
			if err != nil {
				t.Fatal(err)
			}
			return v.Actual
		}
		slack := 1e-9 * math.Max(1, math.Abs(p.Optimum))
		if got := value(p.Point(p.Solution)); math.Abs(got-p.Optimum) > slack {
			t.Errorf("%s: value %v at the solution, want the optimum %v", p.Name, got, p.Optimum)
		}
		for i := range 200 {
			x := p.Random(numbers)
			if i%2 == 0 {
				x = near(p, x, numbers)
			}
			if got := value(x); got < p.Optimum-slack || math.IsNaN(got) {
				t.Errorf("%s: value %v at %v is below the optimum %v", p.Name, got, x.Text(), p.Optimum)
			}
		}
	}
}

// near returns the solution with a step toward a random point in some of the
// doubles.
func near(p *problem.Problem, x problem.Point, numbers *rand.Rand) problem.Point {
	at := append([]float64(nil), p.Solution...)
	step := math.Pow(10, -6*numbers.Float64())
	for i, q := range p.Parameters {
		if q.Kind == problem.Double && numbers.IntN(2) == 0 && !math.IsNaN(x.At[i]) && !math.IsNaN(at[i]) {
			at[i] += step * (x.At[i] - at[i])
		}
	}
	return p.Point(at)
}

// TestSame checks that a problem is a function of its name, and that names are
// unique.
func TestSame(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	again := everything()
	for i, p := range everything() {
		if seen[p.Name] {
			t.Errorf("two problems are named %s", p.Name)
		}
		seen[p.Name] = true
		if !strings.HasPrefix(p.Name, p.Family+"/") {
			t.Errorf("problem %s is of family %s", p.Name, p.Family)
		}
		x := p.Random(rand.New(rand.NewPCG(3, 4)))
		one, err := p.Evaluate(t.Context(), x, rand.New(rand.NewPCG(5, 6)))
		if err != nil {
			t.Fatal(err)
		}
		other, err := again[i].Evaluate(t.Context(), again[i].Point(x.At), rand.New(rand.NewPCG(5, 6)))
		if err != nil || one != other {
			t.Errorf("%s: %v and %v, %v at the same point", p.Name, one, other, err)
		}
	}
}

// TestInstances checks that instances differ.
func TestInstances(t *testing.T) {
	t.Parallel()
	for _, family := range []string{"bbob", "mixed", "noisy"} {
		one, other := problem.Family(family, []int{3}, 1, 1, nil), problem.Family(family, []int{3}, 2, 1, nil)
		for i := range one {
			numbers, same := rand.New(rand.NewPCG(1, 1)), 0
			for range 20 {
				x := one[i].Random(numbers)
				a, _ := one[i].Evaluate(t.Context(), x, numbers)
				b, _ := other[i].Evaluate(t.Context(), other[i].Point(x.At), numbers)
				if a.Actual == b.Actual {
					same++
				}
			}
			if same == 20 {
				t.Errorf("%s and %s have the same values", one[i].Name, other[i].Name)
			}
		}
	}
}

// TestNoise checks that noise changes what is observed and nothing else.
func TestNoise(t *testing.T) {
	t.Parallel()
	for _, p := range problem.Noisy(5, 1) {
		numbers := rand.New(rand.NewPCG(1, 1))
		x := p.Random(numbers)
		differs := 0
		first, _ := p.Evaluate(t.Context(), x, numbers)
		for range 100 {
			v, _ := p.Evaluate(t.Context(), x, numbers)
			if v.Actual != first.Actual {
				t.Errorf("%s: actual values %v and %v at one point", p.Name, v.Actual, first.Actual)
			}
			if v.Observed != v.Actual {
				differs++
			}
		}
		if differs < 3 {
			t.Errorf("%s: %d of 100 observations differ from the value", p.Name, differs)
		}
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	for _, p := range everything() {
		numbers := rand.New(rand.NewPCG(1, 1))
		for range 20 {
			x := p.Random(numbers)
			again, err := p.Read(x.Text())
			if err != nil {
				t.Fatalf("%s: %v", p.Name, err)
			}
			for i, at := range x.At {
				if at != again.At[i] && !(math.IsNaN(at) && math.IsNaN(again.At[i])) {
					t.Errorf("%s: %v reads back as %v", p.Name, x.At, again.At)
				}
			}
		}
	}
	svm := problem.Mixed(1)[0]
	tests := map[string]struct {
		reason string
		values map[string]string
		want   string // part of the error, "" for none
	}{
		"Linear":  {"A linear kernel needs no gamma.", map[string]string{"kernel": "linear", "C": "1", "shrinking": "no"}, ""},
		"Ignored": {"What does not exist may be named.", map[string]string{"kernel": "linear", "C": "1", "shrinking": "no", "gamma": "1"}, ""},
		"Missing": {"What exists must be.", map[string]string{"kernel": "rbf", "C": "1", "shrinking": "no"}, `"gamma" has no value`},
		"Range":   {"In its range.", map[string]string{"kernel": "linear", "C": "1e5", "shrinking": "no"}, "not between"},
		"Choice":  {"And among its choices.", map[string]string{"kernel": "cubic", "C": "1", "shrinking": "no"}, "not one of its choices"},
		"Word":    {"A number is a number.", map[string]string{"kernel": "linear", "C": "one", "shrinking": "no"}, "invalid syntax"},
		"Whole":   {"A whole one is whole.", map[string]string{"kernel": "poly", "C": "1", "gamma": "1", "coef0": "0", "degree": "2.5", "shrinking": "no"}, "not a whole number"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := svm.Read(tc.values)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s Read(%v): got %v, want %q", tc.reason, tc.values, err, tc.want)
			}
		})
	}
}
