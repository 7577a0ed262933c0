// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// allValues returns the texts of a finite parameter's values.
func allValues(t *testing.T, p Parameter) []string {
	t.Helper()
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	a := newAxis(p)
	texts := make([]string, a.count)
	for k := range texts {
		texts[k] = a.format(a.coordinate(uint64(k)))
	}
	return texts
}

func TestStep(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason    string
		parameter Parameter
		want      []string
	}{
		"Decimal":     {"Steps are decimal, so 0.1 + 2·0.1 is 0.3.", Double("x", 0.1, 0.5).By(0.1), []string{"0.1", "0.2", "0.3", "0.4", "0.5"}},
		"MaxOff":      {"The last value is the last that does not exceed max.", Double("x", 0.5, 0.95).By(0.2), []string{"0.5", "0.7", "0.9"}},
		"MaxOn":       {"Max is a value when the steps meet it.", Double("x", 0.01, 0.05).By(0.005), []string{"0.01", "0.015", "0.02", "0.025", "0.03", "0.035", "0.04", "0.045", "0.05"}},
		"TooLarge":    {"A step over the whole range leaves min.", Double("x", 1, 2).By(5), []string{"1"}},
		"Negative":    {"Zero is written without a sign.", Double("x", -0.2, 0.1).By(0.1), []string{"-0.2", "-0.1", "0", "0.1"}},
		"Small":       {"Small numbers are written short.", Double("x", 1e-7, 3e-7).By(1e-7), []string{"1e-07", "2e-07", "3e-07"}},
		"Large":       {"So are large ones.", Double("x", 1e20, 3e20).By(1e20), []string{"1e+20", "2e+20", "3e+20"}},
		"Fixed":       {"A range of one number has one value.", Double("x", 0.5, 0.5), []string{"0.5"}},
		"Int":         {"The step of an int is 1.", Int("n", -1, 2), []string{"-1", "0", "1", "2"}},
		"IntBy":       {"Or another whole number.", Int("n", 1, 8).By(3), []string{"1", "4", "7"}},
		"IntLarge":    {"Ints are written in full.", Int("n", 1<<53-1, 1<<53), []string{"9007199254740991", "9007199254740992"}},
		"Discrete":    {"Discrete values are written as declared.", Parameter{Name: "x", Kind: KindDiscrete, List: []string{"0.10", "1e-3"}}, []string{"0.10", "1e-3"}},
		"Categorical": {"So are texts.", Categorical("x", "b", "", "a"), []string{"b", "", "a"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, allValues(t, tc.parameter)); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestQuantileShape compares quantiles with those that the definitions give.
func TestQuantileShape(t *testing.T) {
	t.Parallel()
	// The part of a normal distribution within three deviations that lies
	// below one deviation above the mean.
	within := math.Erf(3 / math.Sqrt2)
	below := (within + math.Erf(1/math.Sqrt2)) / 2 / within
	tests := map[string]struct {
		reason    string
		parameter Parameter
		u, want   float64
	}{
		"Uniform":      {"A quarter of a uniform distribution is below a quarter of its range.", Double("x", 2, 6), 0.25, 3},
		"Wide":         {"The range may be the widest there is.", Double("x", -1e308, 1e308), 0.75, 5e307},
		"LogUniform":   {"Half of a log-uniform one is below the geometric mean.", Double("x", 1e-4, 1).Log(), 0.5, 1e-2},
		"NormalMiddle": {"Half of a normal one is below the middle.", Double("x", 2, 6).Distributed(Normal), 0.5, 4},
		"Normal":       {"The deviation is a sixth of the range.", Double("x", -3, 3).Distributed(Normal), below, 1},
		"NormalLow":    {"It begins at min.", Double("x", -3, 3).Distributed(Normal), 0, -3},
		"NormalHigh":   {"It ends at max.", Double("x", -3, 3).Distributed(Normal), 1, 3},
		"LogNormal":    {"A log-normal one is normal in its logarithm.", Double("x", math.Exp(-3), math.Exp(3)).Distributed(LogNormal), below, math.E},
		"Int":          {"Whole numbers are equally likely, the ends too.", Int("n", 1, 4), 0.76, 4},
		"IntLow":       {"The first has its full share.", Int("n", 1, 4), 0.24, 1},
		"IntLog":       {"Under a logarithm 1 has the share of 0.5 to 1.5.", Int("n", 1, 2).Log(), math.Log(1.5/0.5) / math.Log(2.5/0.5) * 0.999, 1},
		"IntLogNext":   {"And 2 that of 1.5 to 2.5.", Int("n", 1, 2).Log(), math.Log(1.5/0.5) / math.Log(2.5/0.5) * 1.001, 2},
		"Degenerate":   {"A range of one number has one quantile.", Double("x", 2, 2).Distributed(Normal), 0.3, 2},
		"List":         {"Texts are equally likely.", Categorical("c", "a", "b", "c"), 0.67, 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAxis(tc.parameter)
			if got := a.quantile(tc.u); math.Abs(got-tc.want) > 1e-9*math.Max(1, math.Abs(tc.want)) {
				t.Errorf("%s quantile(%v) = %v, want %v", tc.reason, tc.u, got, tc.want)
			}
		})
	}
}

// TestQuantileGrows checks that quantiles grow with u and stay in range.
func TestQuantileGrows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		min := rapid.Float64Range(1e-6, 1e6).Draw(rt, "min")
		p := Double("x", min, min+rapid.Float64Range(0, 1e6).Draw(rt, "range"))
		p.Distribution = rapid.SampledFrom([]Distribution{Uniform, LogUniform, Normal, LogNormal}).Draw(rt, "distribution")
		if rapid.Bool().Draw(rt, "stepped") {
			p.Step = rapid.Float64Range(1e-3, 1e6).Draw(rt, "step")
		}
		a := newAxis(p)
		last := p.Min
		for i := range 101 {
			x := a.quantile(float64(i) / 100)
			// Logarithms and error functions are right but for some last digits.
			if slack := 1e-13 * math.Abs(last); !(x >= last-slack && x >= p.Min && x <= p.Max) {
				rt.Fatalf("%+v: quantile(%v) = %v after %v", p, float64(i)/100, x, last)
			}
			last = x
		}
	})
}

// TestRank checks that ranks number the points of a space.
func TestRank(t *testing.T) {
	t.Parallel()
	space, err := NewSpace(Double("a", 0.1, 0.7).By(0.1), Int("b", -3, 9).By(2), Categorical("c", "x", "y"), Double("d", 5, 5))
	if err != nil {
		t.Fatal(err)
	}
	size, finite := space.Size()
	if !finite || size != 7*7*2 {
		t.Fatalf("Size() = %d, %v; want 98", size, finite)
	}
	seen := map[string]bool{}
	for n := range size {
		p := space.At(n)
		if seen[p.key()] || space.Rank(p) != n {
			t.Errorf("Rank(At(%d)) = %d; seen before: %v", n, space.Rank(p), seen[p.key()])
		}
		seen[p.key()] = true
	}
}
