// SPDX-License-Identifier: Apache-2.0

package optimize_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"diwan.dev/diwan/optimize"
	"diwan.dev/diwan/optimize/nas"
	"diwan.dev/diwan/optimize/optimizetest"
)

// architectures returns the space of networks of some layers, each one of some
// operations.
func architectures(tb testing.TB, layers, operations int) *optimize.Space {
	tb.Helper()
	space, err := nas.Space(nas.Config{
		Layers: layers, Inputs: []int{32, 32, 3}, Outputs: []int{10},
		Operations: []nas.Operation{{Type: "convolution", Parameters: []optimize.Parameter{optimize.Int("size", 1, operations)}}},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return space
}

// quick is a controller that is small and learns fast.
func quick() optimize.ENASConfig {
	c := optimize.DefaultENASConfig()
	c.Hidden, c.TrainSteps, c.LearningRate = 8, 5, 0.01
	return c
}

func TestENAS(t *testing.T) {
	t.Parallel()
	optimizetest.Run(t, optimizetest.Subject{
		New: func(space *optimize.Space, seed uint64) (optimize.Sampler, error) {
			return optimize.NewENAS(space, seed, quick())
		},
		Spaces: []*optimize.Space{architectures(t, 2, 3), architectures(t, 1, 1), architectures(t, 4, 1), architectures(t, 13, 5)},
	})
}

// TestENASLearns has it find a chain of operations in which each is the one
// before plus one, with few skip connections, better than random search does.
func TestENASLearns(t *testing.T) {
	t.Parallel()
	const layers, operations, trials, searches = 5, 5, 150, 6
	space := architectures(t, layers, operations)
	value := func(p optimize.Point) float64 {
		sum, before := 0.0, operations-1
		for l := 1; l <= layers; l++ {
			operation := int(p.Text(fmt.Sprintf("layer%d.operation", l))[0] - '0')
			if operation == (before+1)%operations {
				sum++
			}
			before = operation
			for k := range l - 1 {
				if p.Text(fmt.Sprintf("layer%d.skip%d", l, k)) == "1" {
					sum -= 0.2
				}
			}
		}
		return sum
	}
	// mean of the last third of the values that a sampler finds, and the best
	run := func(s optimize.Sampler) (late, best float64) {
		h := optimize.NewHistory(space, optimize.Maximize)
		best = math.Inf(-1)
		for i := range trials {
			p, err := s.Sample(t.Context(), h)
			if err != nil {
				t.Fatal(err)
			}
			v := value(p)
			if err := h.Tell(h.Add(p), optimize.Values(v)); err != nil {
				t.Fatal(err)
			}
			best = max(best, v)
			if i >= trials*2/3 {
				late += v / (trials / 3)
			}
		}
		return late, best
	}
	var late, best, randomLate, randomBest float64
	for seed := range uint64(searches) {
		c := quick()
		c.Hidden, c.TrainSteps, c.LearningRate, c.SkipTarget = 12, 40, 5e-4, 0.2
		s, err := optimize.NewENAS(space, seed, c)
		if err != nil {
			t.Fatal(err)
		}
		l, b := run(s)
		late, best = late+l/searches, best+b/searches
		l, b = run(optimize.NewRandom(seed))
		randomLate, randomBest = randomLate+l/searches, randomBest+b/searches
	}
	t.Logf("mean of the last values %.2f, of the best %.2f; random %.2f, %.2f", late, best, randomLate, randomBest)
	if late < randomLate+1 || best < randomBest+0.5 {
		t.Errorf("mean of the last values %.2f, of the best %.2f: want clearly above those of random, %.2f and %.2f", late, best, randomLate, randomBest)
	}
}

// TestENASLateResults tells results long after others, which changes what was
// learned since, and compares with a sampler that sees the history at once.
func TestENASLateResults(t *testing.T) {
	t.Parallel()
	space := architectures(t, 3, 3)
	anew := func() optimize.Sampler {
		s, err := optimize.NewENAS(space, 1, quick())
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	running := anew()
	h := optimize.NewHistory(space)
	sample := func(s optimize.Sampler) optimize.Point {
		p, err := s.Sample(t.Context(), h)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for i := range 80 {
		h.Add(sample(running))
		if i%40 != 3 { // two are told at the end
			if err := h.Tell(i, optimize.Values(float64(i%7))); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, i := range []int{43, 3} {
		if err := h.Tell(i, optimize.Values(-5)); err != nil {
			t.Fatal(err)
		}
		if p, q := sample(running), sample(anew()); p.String() != q.String() {
			t.Errorf("after the result of %d: %v, and anew %v", i, p, q)
		}
	}
}

func TestENASSettings(t *testing.T) {
	t.Parallel()
	space := architectures(t, 2, 3)
	type settings = map[string]string
	cases := []struct {
		reason   string
		settings settings
		want     string
	}{
		{"the defaults", nil, ""},
		{"all of Katib's", settings{"controller_hidden_size": "10", "controller_temperature": "1", "controller_tanh_const": "2", "controller_entropy_weight": "0.1",
			"controller_baseline_decay": "1", "controller_learning_rate": "1", "controller_skip_target": "0.5", "controller_skip_weight": "1",
			"controller_train_steps": "1", "controller_log_every_steps": "1", "random_state": "3"}, ""},
		{"four may be None", settings{"controller_temperature": "None", "controller_tanh_const": "None", "controller_entropy_weight": "None", "controller_skip_weight": "None"}, ""},
		{"no others", settings{"controller_hidden_size": "None"}, `setting controller_hidden_size is "None": want an integer from 1`},
		{"a network has units", settings{"controller_hidden_size": "0"}, "controller_hidden_size"},
		{"a temperature is above 0", settings{"controller_temperature": "0"}, "controller_temperature"},
		{"so is a bound", settings{"controller_tanh_const": "-1"}, "controller_tanh_const"},
		{"a rate is at most 1", settings{"controller_learning_rate": "1.1"}, "controller_learning_rate"},
		{"a decay too", settings{"controller_baseline_decay": "2"}, "controller_baseline_decay"},
		{"and a chance", settings{"controller_skip_target": "nan"}, "controller_skip_target"},
		{"there is something to learn", settings{"controller_train_steps": "0"}, "controller_train_steps"},
		{"what is not used is read", settings{"controller_log_every_steps": "x"}, "controller_log_every_steps"},
		{"names are known", settings{"hidden_size": "3"}, `unknown setting "hidden_size"`},
	}
	for _, c := range cases {
		err := optimize.CheckSettings("enas", c.settings, optimize.Problem{Space: space})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.reason, err, c.want)
		}
	}
	for _, parameters := range [][]optimize.Parameter{
		{optimize.Double("x", 0, 1)},
		{optimize.Categorical("a", "1", "2"), optimize.Categorical("b", "1", "2")},
		{optimize.Categorical("a", "1", "2"), optimize.Categorical("b", "1", "2"), optimize.Categorical("c", "1", "2", "3")},
		{optimize.Categorical("a", "1", "2", "3"), optimize.Categorical("b", "1", "2"), optimize.Categorical("c", "1", "2")},
	} {
		if _, err := optimize.New("enas", nil, optimize.Problem{Space: mustSpace(t, parameters...)}); err == nil || !strings.Contains(err.Error(), "nasConfig") {
			t.Errorf("space %+v: got %v, want an error that says what is wanted", parameters, err)
		}
	}
}

// TestENASExtremes gives it values that are hard to learn from.
func TestENASExtremes(t *testing.T) {
	t.Parallel()
	space := architectures(t, 3, 4)
	for name, value := range map[string]func(int) optimize.Result{
		"Constant":   func(int) optimize.Result { return optimize.Values(1) },
		"Huge":       func(i int) optimize.Result { return optimize.Values([]float64{1e308, -1e308}[i%2]) },
		"Infinite":   func(i int) optimize.Result { return optimize.Values(math.Inf(1 - i%2*2)) },
		"Failed":     func(int) optimize.Result { return optimize.Result{State: optimize.Failed} },
		"Infeasible": func(int) optimize.Result { return optimize.Result{State: optimize.Infeasible} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := optimize.NewENAS(space, 1, quick())
			if err != nil {
				t.Fatal(err)
			}
			h := optimize.NewHistory(space)
			var seen []string
			for i := range 60 {
				p, err := s.Sample(t.Context(), h)
				if err != nil {
					t.Fatal(err)
				}
				if slices.Contains(seen, p.String()) {
					t.Fatalf("suggestion %d is there again: %v", i, p)
				}
				seen = append(seen, p.String())
				if err := h.Tell(h.Add(p), value(i)); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func ExampleNewENAS() {
	space, err := nas.Space(nas.Config{
		Layers: 2, Inputs: []int{28, 28, 1}, Outputs: []int{10},
		Operations: []nas.Operation{{Type: "convolution", Parameters: []optimize.Parameter{
			optimize.Categorical("filter_size", "3", "5"), optimize.Categorical("num_filter", "16", "32"),
		}}},
	})
	if err != nil {
		panic(err)
	}
	sampler, err := optimize.NewENAS(space, 1, optimize.DefaultENASConfig())
	if err != nil {
		panic(err)
	}
	study := optimize.NewStudy(space, optimize.Options{Sampler: sampler, Directions: []optimize.Direction{optimize.Maximize}})
	trial, err := study.Ask(context.Background())
	if err != nil {
		panic(err)
	}
	for _, a := range trial.Point.Assignments() {
		fmt.Println(a.Name, a.Value)
	}
	// Output:
	// architecture [[1], [0, 0]]
	// nn_config {'num_layers': 2, 'input_sizes': [28, 28, 1], 'output_sizes': [10], 'embedding': {'1': {'opt_id': 1, 'opt_type': 'convolution', 'opt_params': {'filter_size': '3', 'num_filter': '32'}}, '0': {'opt_id': 0, 'opt_type': 'convolution', 'opt_params': {'filter_size': '3', 'num_filter': '16'}}}}
}

// BenchmarkENAS is a suggestion after one more result, with the default
// controller.
func BenchmarkENAS(b *testing.B) {
	for _, size := range []struct{ layers, operations int }{{4, 6}, {12, 12}} {
		b.Run(fmt.Sprintf("layers=%d", size.layers), func(b *testing.B) {
			space := architectures(b, size.layers, size.operations)
			s, err := optimize.NewENAS(space, 1, optimize.DefaultENASConfig())
			if err != nil {
				b.Fatal(err)
			}
			h := optimize.NewHistory(space)
			for b.Loop() {
				p, err := s.Sample(b.Context(), h)
				if err != nil {
					b.Fatal(err)
				}
				if err := h.Tell(h.Add(p), optimize.Values(float64(h.Len()*7919%101))); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
