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

func TestHyperband(t *testing.T) {
	t.Parallel()
	optimizetest.Run(t, optimizetest.Subject{
		New: func(space *optimize.Space, seed uint64) (optimize.Sampler, error) {
			c := optimize.DefaultHyperbandConfig()
			c.Resource = "epochs"
			return optimize.NewHyperband(space, seed, c)
		},
		Parameters: []optimize.Parameter{optimize.Int("epochs", 1, 4)},
		Objectives: 2,
	})
}

func TestASHA(t *testing.T) {
	t.Parallel()
	optimizetest.Run(t, optimizetest.Subject{
		New: func(space *optimize.Space, seed uint64) (optimize.Sampler, error) {
			c := optimize.DefaultASHAConfig()
			c.Resource, c.Eta, c.Brackets = "epochs", 2, 2
			return optimize.NewASHA(space, seed, c)
		},
		Parameters: []optimize.Parameter{optimize.Discrete("epochs", 4, 1, 2)},
		Objectives: 2,
	})
}

// TestASHAOfTPE holds a search whose configurations come from a model to the
// contract.
func TestASHAOfTPE(t *testing.T) {
	t.Parallel()
	optimizetest.Run(t, optimizetest.Subject{
		New: func(space *optimize.Space, seed uint64) (optimize.Sampler, error) {
			c := optimize.DefaultASHAConfig()
			c.Resource, c.MinPoints = "epochs", 1
			c.Configurations = func(space *optimize.Space, seed uint64) (optimize.Sampler, error) {
				return optimize.NewTPE(space, seed, optimize.DefaultTPEConfig())
			}
			return optimize.NewASHA(space, seed, c)
		},
		Parameters: []optimize.Parameter{optimize.Double("epochs", 0.25, 1).By(0.25)},
	})
}

func TestFidelitySettings(t *testing.T) {
	t.Parallel()
	space := mustSpace(t, optimize.Double("x", 0, 1), optimize.Int("epochs", 1, 9), optimize.Categorical("c", "a", "b"), optimize.Int("p", 1, 3), optimize.Int("child", 1, 2).When("p", "1"))
	type settings = map[string]string
	tests := map[string]struct {
		algorithm string
		settings  settings
		want      string // part of the error, "" for none
	}{
		"Katib":     {"hyperband", settings{"resource_name": "epochs", "r_l": "9", "eta": "3"}, ""},
		"Float":     {"hyperband", settings{"resource_name": "epochs", "r_l": "8.5", "eta": "2.5"}, ""},
		"Missing":   {"hyperband", nil, "setting r_l is missing"},
		"NoName":    {"hyperband", settings{"r_l": "9"}, "setting resource_name is missing"},
		"NoSuch":    {"hyperband", settings{"resource_name": "steps", "r_l": "9"}, `resource_name is "steps"`},
		"Text":      {"hyperband", settings{"resource_name": "c", "r_l": "9"}, "a parameter of type categorical"},
		"Parent":    {"hyperband", settings{"resource_name": "p", "r_l": "3"}, "without dependencies"},
		"Negative":  {"hyperband", settings{"resource_name": "epochs", "r_l": "-1"}, `r_l is "-1": want a number greater than 0`},
		"TooMuch":   {"hyperband", settings{"resource_name": "epochs", "r_l": "10"}, "r_l is 10: want a number greater than 0 among the values of parameter \"epochs\", from 1 to 9"},
		"Eta":       {"hyperband", settings{"resource_name": "epochs", "r_l": "9", "eta": "1"}, `eta is "1": want a number greater than 1`},
		"Rungs":     {"hyperband", settings{"resource_name": "epochs", "r_l": "9", "eta": "1.000001"}, "more than 1000 rungs"},
		"Least":     {"asha", settings{"resource_name": "epochs", "r_l": "9", "r_min": "10"}, "r_min is 10"},
		"Brackets":  {"asha", settings{"resource_name": "epochs", "r_l": "9", "brackets": "3"}, ""},
		"Sampler":   {"asha", settings{"resource_name": "epochs", "r_l": "9", "sampler": "multivariate-tpe"}, ""},
		"SamplerX":  {"asha", settings{"resource_name": "epochs", "r_l": "9", "sampler": "grid"}, `sampler is "grid": want one of random, multivariate-tpe`},
		"BracketsX": {"asha", settings{"resource_name": "epochs", "r_l": "9", "brackets": "4"}, "brackets is 4: want an integer from 1 to the number of rungs, 3"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := optimize.CheckSettings(tc.algorithm, tc.settings, optimize.Problem{Space: space})
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("CheckSettings: got %v, want %q", err, tc.want)
			}
		})
	}
}

// Finds a learning rate with few long trials.
func ExampleNewASHA() {
	space, err := optimize.NewSpace(optimize.Double("lr", 1e-4, 1).Log(), optimize.Int("epochs", 1, 27))
	if err != nil {
		panic(err)
	}
	c := optimize.DefaultASHAConfig()
	c.Resource = "epochs"
	asha, err := optimize.NewASHA(space, 1, c)
	if err != nil {
		panic(err)
	}
	study := optimize.NewStudy(space, optimize.Options{Sampler: asha})
	trials := map[int]int{}
	for range 200 {
		trial, err := study.Ask(context.Background())
		if err != nil {
			panic(err)
		}
		epochs := trial.Point.Int("epochs")
		trials[epochs]++
		loss := math.Abs(math.Log10(trial.Point.Float("lr"))+2) + 1/float64(epochs)
		if err := study.Tell(trial.Index, loss); err != nil {
			panic(err)
		}
	}
	best, _ := study.Best()
	fmt.Printf("lr=%.2f, trials by epochs: %v\n", best.Point.Float("lr"), trials)
	// Output: lr=0.01, trials by epochs: map[1:127 3:49 9:18 27:6]
}

// Finds a learning rate by Hyperband.
func ExampleNewHyperband() {
	space, err := optimize.NewSpace(optimize.Double("lr", 1e-4, 1).Log(), optimize.Int("epochs", 1, 9))
	if err != nil {
		panic(err)
	}
	c := optimize.DefaultHyperbandConfig()
	c.Resource = "epochs"
	hyperband, err := optimize.NewHyperband(space, 1, c)
	if err != nil {
		panic(err)
	}
	study := optimize.NewStudy(space, optimize.Options{Sampler: hyperband})
	for range 9 + 3 + 1 + 5 + 1 + 3 { // one round of its brackets
		trial, err := study.Ask(context.Background())
		if err != nil {
			panic(err)
		}
		loss := math.Abs(math.Log10(trial.Point.Float("lr"))+2) + 1/float64(trial.Point.Int("epochs"))
		if err := study.Tell(trial.Index, loss); err != nil {
			panic(err)
		}
	}
	best, _ := study.Best()
	fmt.Println("epochs of the best:", best.Point.Int("epochs"))
	// Output: epochs of the best: 9
}
