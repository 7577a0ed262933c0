// SPDX-License-Identifier: Apache-2.0

package optimize_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"diwan.dev/diwan/optimize"
)

func TestValidate(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason    string
		parameter optimize.Parameter
		want      string // part of the error, "" for none
	}{
		"Double":       {"A range is fine.", optimize.Double("x", 0, 1), ""},
		"Point":        {"A range of one number too.", optimize.Double("x", 1, 1), ""},
		"NoName":       {"A parameter is known by its name.", optimize.Double("", 0, 1), "name is empty"},
		"NoKind":       {"A kind is needed.", optimize.Parameter{Name: "x"}, "want double, int, discrete, categorical or ordered"},
		"Backwards":    {"Min is below max.", optimize.Double("x", 2, 1), "min 2 is greater than max 1"},
		"NaN":          {"Bounds are numbers.", optimize.Double("x", math.NaN(), 1), "min is NaN"},
		"Infinite":     {"Bounds are finite.", optimize.Double("x", 0, math.Inf(1)), "max is +Inf"},
		"NegativeStep": {"Steps go up.", optimize.Double("x", 0, 1).By(-1), "step is -1"},
		"TinyStep":     {"Values can be counted.", optimize.Double("x", 0, 1e300).By(1e-300), "want a larger step"},
		"Blurred":      {"Values differ.", optimize.Double("x", 1e16, 1e16+10).By(0.1), "too small to distinguish values"},
		"Fraction":     {"Bounds of an int are whole.", optimize.Parameter{Name: "n", Kind: optimize.KindInt, Min: 0.5, Max: 3}, "want an integer"},
		"FractionStep": {"Its step too.", optimize.Int("n", 0, 3).By(0.5), "want an integer"},
		"IntTooLarge":  {"Every int is exact.", optimize.Parameter{Name: "n", Kind: optimize.KindInt, Max: 1 << 60}, "at most 2^53"},
		"IntTooWide":   {"And so is its range.", optimize.Int("n", -2, 1<<53), "more than 2^53 values"},
		"LogOfZero":    {"Zero has no logarithm.", optimize.Double("x", 0, 1).Log(), "greater than 0"},
		"Distribution": {"Distributions are known.", optimize.Double("x", 0, 1).Distributed("cauchy"), `unknown distribution "cauchy"`},
		"ListOfRange":  {"A range has no list.", optimize.Parameter{Name: "x", Kind: optimize.KindDouble, Max: 1, List: []string{"1"}}, "list is set"},
		"NoList":       {"A choice needs something to choose.", optimize.Categorical("x"), "list is empty"},
		"Twice":        {"A value is there once.", optimize.Categorical("x", "a", "b", "a"), `duplicate "a"`},
		"NotNumber":    {"Discrete values are numbers.", optimize.Parameter{Name: "x", Kind: optimize.KindDiscrete, List: []string{"1", "two"}}, `"two"`},
		"RangeOfList":  {"A list has no range.", optimize.Parameter{Name: "x", Kind: optimize.KindCategorical, Max: 1, List: []string{"1"}}, "want only a list"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := tc.parameter.Validate()
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s Validate() = %v, want %q", tc.reason, err, tc.want)
			}
			if _, spaceErr := optimize.NewSpace(tc.parameter); (spaceErr == nil) != (err == nil) {
				t.Errorf("%s NewSpace(...) = %v, but Validate() = %v", tc.reason, spaceErr, err)
			}
		})
	}
}

func TestDeclaration(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason      string
		declaration optimize.Declaration
		want        optimize.Parameter
		err         string
	}{
		"Double":   {"Numbers are read.", optimize.Declaration{Name: "x", Kind: "double", Min: "0.01", Max: "5e-2", Step: "0.005", Distribution: "normal"}, optimize.Double("x", 0.01, 0.05).By(0.005).Distributed(optimize.Normal), ""},
		"Int":      {"Those of an int too.", optimize.Declaration{Name: "n", Kind: "int", Min: "2", Max: "5"}, optimize.Int("n", 2, 5), ""},
		"List":     {"A value that is there twice counts once.", optimize.Declaration{Name: "c", Kind: "categorical", List: []string{"sgd", "adam", "sgd"}}, optimize.Categorical("c", "sgd", "adam"), ""},
		"Discrete": {"Values keep their spelling.", optimize.Declaration{Name: "d", Kind: "discrete", List: []string{"0.10"}, Distribution: "uniform"}, optimize.Parameter{Name: "d", Kind: optimize.KindDiscrete, List: []string{"0.10"}, Distribution: optimize.Uniform}, ""},
		"LogZero":  {"A logarithm begins where Katib's does.", optimize.Declaration{Name: "x", Kind: "double", Min: "0", Max: "1", Distribution: "logUniform"}, optimize.Double("x", 1e-10, 1).Log(), ""},
		"LogInt":   {"An int's at 1.", optimize.Declaration{Name: "n", Kind: "int", Min: "-4", Max: "8", Distribution: "logUniform"}, optimize.Int("n", 1, 8).Log(), ""},
		"IntStep":  {"The step of an int loses its fraction.", optimize.Declaration{Name: "n", Kind: "int", Min: "0", Max: "10", Step: "2.5"}, optimize.Int("n", 0, 10).By(2), ""},
		"IntHalf":  {"But is not lost with it.", optimize.Declaration{Name: "n", Kind: "int", Min: "0", Max: "10", Step: "0.5"}, optimize.Int("n", 0, 10).By(1), ""},
		"LogNone":  {"There is no logarithm of a range below 0.", optimize.Declaration{Name: "x", Kind: "double", Min: "-2", Max: "-1", Distribution: "logUniform"}, optimize.Parameter{}, `max is -1: want a number greater than 0`},
		"NoMin":    {"A bound that is missing is named.", optimize.Declaration{Name: "x", Kind: "double", Max: "1"}, optimize.Parameter{}, `parameter "x": min is "": want a finite number`},
		"Word":     {"So is one that is no number.", optimize.Declaration{Name: "x", Kind: "double", Min: "0", Max: "much"}, optimize.Parameter{}, `max is "much"`},
		"Huge":     {"Or none that can be kept.", optimize.Declaration{Name: "x", Kind: "double", Min: "0", Max: "1e999"}, optimize.Parameter{}, `max is "1e999"`},
		"BadStep":  {"A step is one as well.", optimize.Declaration{Name: "x", Kind: "double", Min: "0", Max: "1", Step: "NaN"}, optimize.Parameter{}, `step is "NaN"`},
		"Invalid":  {"And the whole is checked.", optimize.Declaration{Name: "x", Kind: "double", Min: "3", Max: "1"}, optimize.Parameter{}, "greater than max"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := tc.declaration.Parameter()
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("%s Parameter(): got error %v, want %q", tc.reason, err, tc.err)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s Parameter(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// FuzzDeclaration checks that whatever a manifest declares is rejected or gives
// values that read back as themselves.
func FuzzDeclaration(f *testing.F) {
	f.Add("double", "0.1", "1", "0.1", "uniform", "a")
	f.Add("int", "-5", "9007199254740992", "2", "normal", "")
	f.Add("int", "-2", "9007199254740992", "", "", "")
	f.Add("double", "0", "1e308", "", "logNormal", "0.5")
	f.Add("double", "-1e308", "1e308", "1e300", "normal", "")
	f.Add("double", "1e16", "2e16", "17", "", "")
	f.Add("double", "0.1", "123456789.7", "0.0000001", "", "")
	f.Add("discrete", "", "", "", "", "1e-320")
	f.Fuzz(func(t *testing.T, kind, low, high, step, distribution, value string) {
		d := optimize.Declaration{
			Name: "x", Kind: optimize.Kind(kind), Min: low, Max: high, Step: step, Distribution: optimize.Distribution(distribution),
		}
		if value != "" {
			d.List = []string{value, value + "1"}
		}
		p, err := d.Parameter()
		if err != nil {
			return
		}
		space, err := optimize.NewSpace(p)
		if err != nil {
			t.Fatalf("%+v is valid, but its space is not: %v", p, err)
		}
		if size, finite := space.Size(); finite {
			for n := range min(size, 50) {
				for _, rank := range []uint64{n, size - 1 - n} {
					if got := space.Rank(space.At(rank)); got != rank {
						t.Fatalf("%+v: value %d of %d, %v, is value %d", p, rank, size, space.At(rank), got)
					}
				}
			}
		}
		for _, u := range []float64{0, 0.3, 0.999, 1} {
			point := space.Quantile([]float64{u})
			again, err := space.Parse(point.Assignments())
			if err != nil || again.String() != point.String() {
				t.Errorf("%+v: quantile %v is %v, and reads back as %v, %v", p, u, point, again, err)
			}
		}
	})
}
