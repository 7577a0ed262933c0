// SPDX-License-Identifier: Apache-2.0

package optimize_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"diwan.dev/diwan/optimize"
	"diwan.dev/diwan/optimize/optimizetest"
)

func TestBOHB(t *testing.T) {
	t.Parallel()
	optimizetest.Run(t, optimizetest.Subject{
		New: func(space *optimize.Space, seed uint64) (optimize.Sampler, error) {
			c := optimize.DefaultBOHBConfig()
			c.Resource, c.MinPoints = "epochs", 1
			return optimize.NewBOHB(space, seed, c)
		},
		Parameters: []optimize.Parameter{optimize.Int("epochs", 1, 4)},
		Objectives: 2,
	})
}

// Finds two numbers whose effect shows after some epochs.
func ExampleNewBOHB() {
	space, err := optimize.NewSpace(optimize.Double("x", 0, 1), optimize.Double("y", 0, 1), optimize.Int("epochs", 1, 9))
	if err != nil {
		panic(err)
	}
	c := optimize.DefaultBOHBConfig()
	c.Resource = "epochs"
	sampler, err := optimize.NewBOHB(space, 1, c)
	if err != nil {
		panic(err)
	}
	study := optimize.NewStudy(space, optimize.Options{Sampler: sampler})
	for range 200 {
		trial, err := study.Ask(context.Background())
		if err != nil {
			panic(err)
		}
		p := trial.Point
		loss := math.Pow(p.Float("x")-0.3, 2) + math.Pow(p.Float("y")-0.7, 2) + 1/float64(p.Int("epochs"))
		if err := study.Tell(trial.Index, loss); err != nil {
			panic(err)
		}
	}
	best, _ := study.Best()
	fmt.Printf("x=%.1f y=%.1f epochs=%d\n", best.Point.Float("x"), best.Point.Float("y"), best.Point.Int("epochs"))
	// Output: x=0.3 y=0.7 epochs=9
}

// With the same trials, the model's configurations are far better than
// Hyperband's, which are random.
func TestBOHBLearns(t *testing.T) {
	t.Parallel()
	space := mustSpace(t, optimize.Double("x", 0, 1), optimize.Double("y", 0, 1), optimize.Double("z", 0, 1), optimize.Int("epochs", 1, 9))
	search := func(algorithm string) (sum float64) {
		for seed := range uint64(5) {
			sampler, err := optimize.New(algorithm, map[string]string{"resource_name": "epochs", "r_l": "9"}, optimize.Problem{Space: space, Seed: seed})
			if err != nil {
				t.Fatal(err)
			}
			study := optimize.NewStudy(space, optimize.Options{Sampler: sampler})
			for range 150 {
				trial, err := study.Ask(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				loss := 1/float64(trial.Point.Int("epochs")) - 1.0/9
				for i, name := range []string{"x", "y", "z"} {
					loss += math.Pow(trial.Point.Float(name)-0.2-0.3*float64(i), 2)
				}
				if err := study.Tell(trial.Index, loss); err != nil {
					t.Fatal(err)
				}
			}
			best, _ := study.Best()
			sum += best.Value()
		}
		return sum
	}
	if model, random := search("bohb"), search("hyperband"); model > random/2 {
		t.Errorf("bohb ends at %v and hyperband at %v: want less than half", model, random)
	}
}

func TestBOHBSettings(t *testing.T) {
	t.Parallel()
	space := mustSpace(t, optimize.Double("x", 0, 1), optimize.Int("epochs", 1, 9))
	for setting, want := range map[string]string{
		"min_points_in_model=0": `min_points_in_model is "0": want an integer from 1`,
		"min_points_in_model=5": "",
		"random_fraction=1.5":   `random_fraction is "1.5": want a number from 0 to 1`,
		"random_fraction=0":     "",
		"top_n_percent=100":     `top_n_percent is "100": want a number between 0 and 100`,
		"num_samples=0":         `num_samples is "0"`,
		"eta=2":                 "",
	} {
		name, value, _ := strings.Cut(setting, "=")
		settings := map[string]string{"resource_name": "epochs", "r_l": "9", name: value}
		err := optimize.CheckSettings("bohb", settings, optimize.Problem{Space: space})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", setting, err, want)
		}
	}
	if err := optimize.CheckSettings("bohb", nil, optimize.Problem{Space: space}); err == nil {
		t.Error("no resource_name: want an error")
	}
}
