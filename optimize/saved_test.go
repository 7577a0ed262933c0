// SPDX-License-Identifier: Apache-2.0

package optimize_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"diwan.dev/diwan/optimize"
	"diwan.dev/diwan/optimize/nas"
	"diwan.dev/diwan/optimize/stopping"
)

// networks is the config of the spaces of enas and darts.
func networks() nas.Config {
	return nas.Config{Layers: 3, Inputs: []int{28, 28, 1}, Outputs: []int{10}, Operations: []nas.Operation{
		{Type: "convolution", Parameters: []optimize.Parameter{optimize.Categorical("filter_size", "3", "5")}}, {Type: "pooling"},
	}}
}

// searched returns a space for an algorithm, whether it has functions, and the
// settings that the algorithm needs.
func searched(name string) (space *optimize.Space, functions bool, settings map[string]string, err error) {
	settings = required(name)
	switch name {
	case "enas":
		space, err = nas.Space(networks())
		return space, true, map[string]string{"controller_hidden_size": "8", "controller_train_steps": "3"}, err
	case "darts":
		space, err = nas.OneShot(networks(), nil)
		return space, true, nil, err
	}
	rate, decay := optimize.Double("rate", 1e-4, 1).Log(), optimize.Double("decay", 0.01, 0.5)
	if name == "grid" {
		rate, decay = optimize.Double("rate", 0.1, 0.9).By(0.1), decay.By(0.1)
	}
	space, err = optimize.NewSpace(rate, optimize.Int("epochs", 1, 9), optimize.Double("momentum", 0, 0.9).By(0.1),
		optimize.Ordered("size", "small", "medium", "large"), optimize.Discrete("batch", 16, 32), optimize.Categorical("optimizer", "sgd", "adam"),
		decay.When("optimizer", "adam"))
	return space, false, settings, err
}

// interrupted returns a study by an algorithm in the midst of a search, with
// trials in every state, known results and a queue, and its saved form.
func interrupted(ctx context.Context, name string) (study *optimize.Study, data []byte, err error) {
	space, _, settings, err := searched(name)
	if err != nil {
		return nil, nil, err
	}
	sampler, err := optimize.New(name, settings, optimize.Problem{Space: space, Seed: 1<<60 + 1, Budget: optimize.Budget{MaxTrials: 60, Parallel: 3}})
	if err != nil {
		return nil, nil, err
	}
	history := optimize.NewHistory(space, optimize.Maximize)
	if name != "darts" && name != "grid" {
		if err := history.AddKnown(space.Quantile(make([]float64, space.Len())), optimize.Values(0.25)); err != nil {
			return nil, nil, err
		}
	}
	study = optimize.ResumeStudy(history, sampler)
	numbers := rand.New(rand.NewPCG(1, 2))
	for i := range 30 {
		trial, err := study.Ask(ctx)
		if errors.Is(err, optimize.ErrExhausted) {
			break
		}
		if err != nil {
			return nil, nil, err
		}
		for step := range numbers.IntN(4) {
			if _, _, err := study.Report(trial.Index, step+1, numbers.Float64()); err != nil {
				return nil, nil, err
			}
		}
		result := optimize.Values(numbers.NormFloat64())
		switch numbers.IntN(12) {
		case 0, 1:
			continue // pending
		case 2:
			result = optimize.Result{State: optimize.Failed}
		case 3:
			result = optimize.Result{State: optimize.Infeasible}
		case 4:
			result.State, result.Step = optimize.Stopped, i
		case 5:
			result.Violations = []float64{-1, 0.5, math.NaN()}
		}
		if err := study.TellResult(trial.Index, result); err != nil {
			return nil, nil, err
		}
	}
	data, err = study.Save()
	return study, data, err
}

// next returns the next suggestions of a study as texts.
func next(ctx context.Context, study *optimize.Study) (texts []string, err error) {
	for i := range 6 {
		trial, err := study.Ask(ctx)
		if errors.Is(err, optimize.ErrExhausted) {
			return append(texts, err.Error()), nil
		}
		if err != nil {
			return nil, err
		}
		texts = append(texts, fmt.Sprint(trial.Index, trial.Point, trial.Point.Labels()))
		if i%2 == 0 {
			if err := study.Tell(trial.Index, float64(i)); err != nil {
				return nil, err
			}
		}
	}
	return texts, nil
}

// freshProcess is set for the process that TestSavedInFreshProcess starts.
const freshProcess = "DIWAN_LOAD_STUDIES"

// TestSavedInFreshProcess interrupts a search by each algorithm and has another
// process go on with it, which has nothing but the saved form: it makes the
// same suggestions.
func TestSavedInFreshProcess(t *testing.T) {
	if os.Getenv(freshProcess) != "" {
		loadStudies(t)
		return
	}
	t.Parallel()
	want, saved := map[string][]string{}, map[string]string{}
	for _, a := range optimize.Known() {
		study, data, err := interrupted(t.Context(), a.Name)
		if err != nil {
			t.Fatalf("%s: %v", a.Name, err)
		}
		saved[a.Name] = string(data)
		if want[a.Name], err = next(t.Context(), study); err != nil {
			t.Fatalf("%s: %v", a.Name, err)
		}
	}
	input, err := json.Marshal(saved)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSavedInFreshProcess$")
	command.Env = append(os.Environ(), freshProcess+"=1")
	command.Stdin = strings.NewReader(string(input))
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	line, _, _ := strings.Cut(string(output), "\n")
	got := map[string][]string{}
	if err := json.Unmarshal([]byte(line), &got); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("suggestions: -of this process, +of another that loaded the study:\n%s", diff)
	}
}

// loadStudies reads saved studies and writes their next suggestions.
func loadStudies(t *testing.T) {
	saved, got := map[string]string{}, map[string][]string{}
	if err := json.NewDecoder(os.Stdin).Decode(&saved); err != nil {
		t.Fatal(err)
	}
	for name, data := range saved {
		o := optimize.LoadOptions{}
		if space, functions, _, err := searched(name); err != nil {
			t.Fatal(err)
		} else if functions {
			o.Space = space
		}
		study, err := optimize.LoadStudy([]byte(data), o)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got[name], err = next(t.Context(), study); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(got); err != nil {
		t.Fatal(err)
	}
}

// TestSavedComesBack saves what loads, for each algorithm: nothing is lost.
func TestSavedComesBack(t *testing.T) {
	t.Parallel()
	for _, a := range optimize.Known() {
		t.Run(a.Name, func(t *testing.T) {
			t.Parallel()
			study, _, err := interrupted(t.Context(), a.Name)
			if err != nil {
				t.Fatal(err)
			}
			if trials := study.Trials(); a.Name != "darts" {
				study.Enqueue(trials[1].Point, trials[0].Point.WithLabels(map[string]string{"why": "again"}))
			}
			data, err := study.Save()
			if err != nil {
				t.Fatal(err)
			}
			o := optimize.LoadOptions{}
			if space, functions, _, err := searched(a.Name); err != nil {
				t.Fatal(err)
			} else if functions {
				o.Space = space
			}
			loaded, err := optimize.LoadStudy(data, o)
			if err != nil {
				t.Fatal(err)
			}
			again, err := loaded.Save()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(data), string(again)); diff != "" {
				t.Errorf("saved again: -want, +got:\n%s", diff)
			}
			best, ok := study.Best()
			bestLoaded, okLoaded := loaded.Best()
			if ok != okLoaded || best.Index != bestLoaded.Index || best.Point.String() != bestLoaded.Point.String() {
				t.Errorf("best is %+v, loaded %+v", best, bestLoaded)
			}
		})
	}
}

// TestSavedSpaces saves studies of any space with any points in any state.
func TestSavedSpaces(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.String()
		size := rapid.IntRange(2, 4).Draw(rt, "size")
		parameters := []optimize.Parameter{
			optimize.Categorical("first", rapid.SliceOfNDistinct(text, size, size, rapid.ID).Draw(rt, "list")...),
			optimize.Discrete("second", rapid.SliceOfNDistinct(rapid.Float64Range(-1e300, 1e300), 1, 3, rapid.ID).Draw(rt, "numbers")...),
		}
		low := rapid.Float64Range(-1e9, 1e9).Draw(rt, "min")
		high := low + rapid.Float64Range(0, 1e9).Draw(rt, "range")
		parameters = append(parameters, optimize.Double("third", low, high), optimize.Double("fourth", 1, 2).By(rapid.Float64Range(1e-3, 1).Draw(rt, "step")).When("first", parameters[0].List[0]))
		space, err := optimize.NewSpace(parameters...)
		if err != nil {
			rt.Fatal(err)
		}
		directions := rapid.SliceOfN(rapid.SampledFrom([]optimize.Direction{optimize.Minimize, optimize.Maximize}), 1, 3).Draw(rt, "directions")
		history := optimize.NewHistory(space, directions...)
		values := rapid.SliceOfN(rapid.Float64(), len(directions), len(directions))
		labels := rapid.MapOfN(text, text, 0, 2)
		draw := func() optimize.Point {
			u := rapid.SliceOfN(rapid.Float64Range(0, 1), space.Len(), space.Len()).Draw(rt, "u")
			return space.Quantile(u).WithLabels(labels.Draw(rt, "labels"))
		}
		result := func() optimize.Result {
			r := optimize.Result{State: rapid.SampledFrom([]optimize.State{optimize.Complete, optimize.Failed, optimize.Infeasible, optimize.Stopped}).Draw(rt, "state")}
			r.Values, r.Step = values.Draw(rt, "values"), rapid.IntRange(0, 9).Draw(rt, "step")
			r.Violations = rapid.SliceOfN(rapid.SampledFrom([]float64{math.Inf(1), math.Inf(-1), 0, 1e-320, math.NaN()}), 0, 2).Draw(rt, "violations")
			return r
		}
		for range rapid.IntRange(0, 3).Draw(rt, "known") {
			if err := history.AddKnown(draw(), result()); err != nil {
				rt.Fatal(err)
			}
		}
		for range rapid.IntRange(0, 6).Draw(rt, "trials") {
			switch rapid.IntRange(0, 4).Draw(rt, "trial") {
			case 0:
				history.AddLost()
			case 1:
				history.Add(draw())
			default:
				if err := history.Tell(history.Add(draw()), result()); err != nil {
					rt.Fatal(err)
				}
			}
		}
		study := optimize.ResumeStudy(history, optimize.NewRandom(1))
		for i := range history.Len() {
			for step := range rapid.IntRange(0, 2).Draw(rt, "reports") {
				if _, _, err := study.Report(i, step, rapid.Float64().Draw(rt, "report")); err != nil {
					rt.Fatal(err)
				}
			}
		}
		study.Enqueue(draw())
		data, err := study.Save()
		if err != nil {
			rt.Fatal(err)
		}
		own := func(*optimize.Space) (optimize.Sampler, error) { return optimize.NewRandom(1), nil }
		loaded, err := optimize.LoadStudy(data, optimize.LoadOptions{Sampler: own})
		if err != nil {
			rt.Fatalf("%v:\n%s", err, data)
		}
		for i, got := range loaded.Trials() {
			want := history.Trial(i)
			if got.Point.String() != want.Point.String() || !maps.Equal(got.Point.Labels(), want.Point.Labels()) {
				rt.Fatalf("trial %d is %v %v, loaded %v %v", i, want.Point, want.Point.Labels(), got.Point, got.Point.Labels())
			}
			if diff := cmp.Diff(want.Result, got.Result, cmpopts.EquateEmpty()); diff != "" {
				rt.Fatalf("result %d: -want, +got:\n%s", i, diff)
			}
		}
		if again, err := loaded.Save(); err != nil || string(again) != string(data) {
			rt.Fatalf("saved again: %v\n%s\n%s", err, data, again)
		}
	})
}

// TestSavedReports stops trials after a restart as before it.
func TestSavedReports(t *testing.T) {
	t.Parallel()
	for _, direction := range []optimize.Direction{optimize.Minimize, optimize.Maximize} {
		space := mustSpace(t, optimize.Double("x", 0, 1))
		study := optimize.NewStudy(space, optimize.Options{Directions: []optimize.Direction{direction}})
		good, bad := 1.0, 9.0
		if direction == optimize.Maximize {
			good, bad = bad, good
		}
		for i := range 4 {
			if _, err := study.Ask(t.Context()); err != nil {
				t.Fatal(err)
			}
			for step, v := range []float64{math.NaN(), good, good}[:3-i/3] {
				if _, _, err := study.Report(i, step, v); err != nil {
					t.Fatal(err)
				}
			}
			if i < 3 {
				if err := study.Tell(i, good); err != nil {
					t.Fatal(err)
				}
			}
		}
		data, err := study.Save()
		if err != nil {
			t.Fatal(err)
		}
		loaded, err := optimize.LoadStudy(data, optimize.LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		rule, err := stopping.NewPercentile(stopping.PercentileConfig{Percentile: 50, StartupTrials: 3, IntervalSteps: 1, MinTrials: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []*optimize.Study{study, loaded} {
			if _, err := s.Ask(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.StopEarly(rule)
			if stop, reason, err := s.Report(4, 2, bad); !stop || err != nil {
				t.Errorf("direction %v: a bad trial goes on: %q, %v", direction, reason, err)
			}
			if stop, reason, err := s.Report(3, 2, good); stop || err != nil {
				t.Errorf("direction %v: a good trial is stopped: %q, %v", direction, reason, err)
			}
		}
	}
}

// TestLoadStudyErrors checks that what cannot be loaded is rejected with what to
// do about it.
func TestLoadStudyErrors(t *testing.T) {
	t.Parallel()
	const head = `{"version":1,"algorithm":{"name":"random","seed":"1"},"parameters":[{"name":"x","kind":"double","max":1}],"objectives":["minimize"],`
	even := optimize.Constraint{Name: "even", Holds: func(optimize.Point) bool { return true }}
	plain := mustSpace(t, optimize.Double("x", 0, 1))
	constrained, err := plain.Constrained(even)
	if err != nil {
		t.Fatal(err)
	}
	const bounded = `{"version":1,"algorithm":{"name":"random","seed":"1"},"parameters":[{"name":"x","kind":"double","max":1}],"constraints":["even"],"objectives":["minimize"],"trials":[]}`
	for name, c := range map[string]struct {
		data string
		with optimize.LoadOptions
		want string // part of the error, "" for none
	}{
		"Good":        {head + `"trials":[]}`, optimize.LoadOptions{}, ""},
		"Given":       {head + `"trials":[]}`, optimize.LoadOptions{Space: plain}, ""},
		"Empty":       {``, optimize.LoadOptions{}, "unexpected end"},
		"Other":       {`{"trials":[]}`, optimize.LoadOptions{}, "it has no version"},
		"Newer":       {`{"version":2,"more":1}`, optimize.LoadOptions{}, "version is 2: this program reads version 1"},
		"Unknown":     {head + `"trial":[]}`, optimize.LoadOptions{}, `unknown field "trial"`},
		"More":        {head + `"trials":[]} {}`, optimize.LoadOptions{}, "after top-level value"},
		"Algorithm":   {strings.Replace(head, "random", "guess", 1) + `"trials":[]}`, optimize.LoadOptions{}, `unknown algorithm "guess"`},
		"Sampler":     {`{"version":1,"parameters":[{"name":"x","kind":"double","max":1}],"objectives":["minimize"],"trials":[]}`, optimize.LoadOptions{}, "set LoadOptions.Sampler"},
		"NoSampler":   {head + `"trials":[]}`, optimize.LoadOptions{Sampler: func(*optimize.Space) (optimize.Sampler, error) { return nil, nil }}, "returned nil"},
		"Space":       {`{"version":1,"objectives":["minimize"],"trials":[]}`, optimize.LoadOptions{}, "space has no parameters"},
		"Parameter":   {strings.Replace(head, `"max":1`, `"max":-1`, 1) + `"trials":[]}`, optimize.LoadOptions{}, "greater than max"},
		"Objective":   {strings.Replace(head, "minimize", "best", 1) + `"trials":[]}`, optimize.LoadOptions{}, `objectives[0] is "best"`},
		"Objectives":  {strings.Replace(head, `"minimize"`, ``, 1) + `"trials":[]}`, optimize.LoadOptions{}, "objectives are missing"},
		"State":       {head + `"trials":[{"point":{"x":"0.5"},"state":"done"}]}`, optimize.LoadOptions{}, `trials[0]: state is "done"`},
		"Point":       {head + `"trials":[{"point":{"x":"7"},"state":"pending"}]}`, optimize.LoadOptions{}, "trials[0]: "},
		"Foreign":     {head + `"trials":[{"point":{"x":"0.5","y":"1"},"state":"pending"}]}`, optimize.LoadOptions{}, `"y", which is not a parameter`},
		"NoPoint":     {head + `"trials":[{"state":"complete","values":[1]}]}`, optimize.LoadOptions{}, `"x" has no value`},
		"Values":      {head + `"trials":[{"point":{"x":"0.5"},"state":"complete","values":[1,2]}]}`, optimize.LoadOptions{}, "2 values"},
		"Known":       {head + `"known":[{"point":{"x":"0.5"},"state":"pending"}],"trials":[]}`, optimize.LoadOptions{}, "known[0]"},
		"KnownLost":   {head + `"known":[{"state":"lost"}],"trials":[]}`, optimize.LoadOptions{}, "known[0]"},
		"Queue":       {head + `"trials":[],"queue":[{"point":{}}]}`, optimize.LoadOptions{}, "queue[0]"},
		"Constraints": {bounded, optimize.LoadOptions{}, `space has constraints ["even"]: it is not saved: set LoadOptions.Space`},
		"Constrained": {bounded, optimize.LoadOptions{Space: constrained}, ""},
		"Loose":       {bounded, optimize.LoadOptions{Space: plain}, `want the saved ones, ["even"]`},
		"Presented":   {head + `"presented":true,"trials":[]}`, optimize.LoadOptions{Space: plain}, "presentation: false: want true"},
		"OtherSpace":  {head + `"trials":[]}`, optimize.LoadOptions{Space: mustSpace(t, optimize.Double("x", 0, 2))}, `parameter "x" of LoadOptions.Space differs from the saved one`},
		"Fewer":       {head + `"trials":[]}`, optimize.LoadOptions{Space: mustSpace(t, optimize.Double("x", 0, 1), optimize.Double("y", 0, 1))}, "has 2 parameters"},
		"NoSpace":     {head + `"trials":[]}`, optimize.LoadOptions{Space: &optimize.Space{}}, "space is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			study, err := optimize.LoadStudy([]byte(c.data), c.with)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("LoadStudy: got %v, want %q", err, c.want)
			}
			if (study == nil) != (err != nil) {
				t.Errorf("LoadStudy returned %v and %v", study, err)
			}
		})
	}
	study := optimize.NewStudy(mustSpace(t, optimize.Categorical("c", "\xff", "a")), optimize.Options{})
	if _, err := study.Save(); err == nil || !strings.Contains(err.Error(), "not UTF-8") {
		t.Errorf("Save of a text that JSON would change: %v", err)
	}
	if _, err := optimize.NewStudy(nil, optimize.Options{}).Save(); !errors.Is(err, optimize.ErrNoSpace) {
		t.Errorf("Save of a study without a space: %v", err)
	}
}

// TestLoadOlderVersion loads what earlier programs saved.
func TestLoadOlderVersion(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/study-v1.json")
	if err != nil {
		t.Fatal(err)
	}
	study, err := optimize.LoadStudy(data, optimize.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	best, ok := study.Best()
	if trials := study.Trials(); len(trials) != 30 || !ok || best.State != optimize.Complete {
		t.Errorf("%d trials, best %+v: want 30", len(trials), best)
	}
	trial, err := study.Ask(t.Context())
	if err != nil || trial.Point.Labels()["sampler"] == "" {
		t.Errorf("next is %v %v, %v; want a suggestion of auto", trial.Point, trial.Point.Labels(), err)
	}
}

// FuzzLoadStudy checks that whatever is loaded can be saved, comes back as it
// was, and that nothing makes the decoder panic.
func FuzzLoadStudy(f *testing.F) {
	for _, name := range []string{"auto", "hyperband", "pbt", "cmaes"} {
		_, data, err := interrupted(f.Context(), name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"version":1,"algorithm":{"name":"grid","seed":"1"},"parameters":[{"name":"n","kind":"int","max":3,"where":[]}],"objectives":["maximize"],"trials":[{"state":"lost"},{"point":{"n":"3"},"state":"stopped","step":2,"reports":[{"step":1,"value":"-Inf"}]}],"queue":[{"point":{"n":"1"}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		study, err := optimize.LoadStudy(data, optimize.LoadOptions{})
		if err != nil {
			if study != nil {
				t.Errorf("a study and an error: %v", err)
			}
			return
		}
		saved, err := study.Save()
		if err != nil {
			t.Fatalf("cannot save what was loaded: %v\n%s", err, data)
		}
		loaded, err := optimize.LoadStudy(saved, optimize.LoadOptions{})
		if err != nil {
			t.Fatalf("cannot load what was saved: %v\n%s", err, saved)
		}
		if again, err := loaded.Save(); err != nil || string(again) != string(saved) {
			t.Fatalf("saved again: %v\n%s\n%s", err, saved, again)
		}
	})
}

// Interrupts a search and goes on with it, as another process would.
func ExampleLoadStudy() {
	ctx := context.Background()
	space, err := optimize.NewSpace(optimize.Double("x", 0, 1).By(0.125))
	if err != nil {
		panic(err)
	}
	sampler, err := optimize.New("grid", nil, optimize.Problem{Space: space, Seed: 7})
	if err != nil {
		panic(err)
	}
	study := optimize.NewStudy(space, optimize.Options{Sampler: sampler})
	trial, err := study.Ask(ctx)
	if err != nil {
		panic(err)
	}
	if err := study.Tell(trial.Index, 0.5); err != nil {
		panic(err)
	}
	data, err := study.Save()
	if err != nil {
		panic(err)
	}
	fmt.Println(string(data))

	study, err = optimize.LoadStudy(data, optimize.LoadOptions{})
	if err != nil {
		panic(err)
	}
	if trial, err = study.Ask(ctx); err != nil {
		panic(err)
	}
	fmt.Println(trial.Index, trial.Point)
	// Output:
	// {"version":1,"algorithm":{"name":"grid","seed":"7"},"parameters":[{"name":"x","kind":"double","max":1,"step":0.125}],"objectives":["minimize"],"trials":[{"point":{"x":"0"},"state":"complete","values":[0.5]}]}
	// 1 x=0.125
}
