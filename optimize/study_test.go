// SPDX-License-Identifier: Apache-2.0

package optimize_test

import (
	"errors"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"diwan.dev/diwan/optimize"
)

func mustSpace(t *testing.T, parameters ...optimize.Parameter) *optimize.Space {
	t.Helper()
	space, err := optimize.NewSpace(parameters...)
	if err != nil {
		t.Fatal(err)
	}
	return space
}

// TestStudyParallel asks and tells from many goroutines: each point of the
// space is suggested once, and the best is found.
func TestStudyParallel(t *testing.T) {
	t.Parallel()
	space := mustSpace(t, optimize.Int("n", 0, 199))
	study := optimize.NewStudy(space, optimize.Options{Sampler: optimize.NewRandom(0), Directions: []optimize.Direction{optimize.Maximize}})
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for {
				trial, err := study.Ask(t.Context())
				if errors.Is(err, optimize.ErrExhausted) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				if err := study.Tell(trial.Index, float64(trial.Point.Int("n"))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	workers.Wait()
	best, ok := study.Best()
	if len(study.Trials()) != 200 || !ok || best.Value() != 199 {
		t.Errorf("%d trials, best %v: want 200, and 199", len(study.Trials()), best)
	}
}

func TestTell(t *testing.T) {
	t.Parallel()
	space := mustSpace(t, optimize.Int("n", 0, 9))
	study := optimize.NewStudy(space, optimize.Options{})
	if _, ok := study.Best(); ok {
		t.Error("a study without trials has a best")
	}
	for range 4 {
		if _, err := study.Ask(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	steps := []struct {
		reason string
		err    error
		want   string
	}{
		{"A result is taken.", study.Tell(2, 1), ""},
		{"Telling it again changes nothing.", study.Tell(2, 1), ""},
		{"Another is refused.", study.Tell(2, 0.5), "it already has one"},
		{"So is a failure after it.", study.Fail(2), "it already has one"},
		{"Not a number is a failure.", study.Tell(0, math.NaN()), ""},
		{"Which may be told again.", study.Fail(0), ""},
		{"An equal value is no better, but earlier.", study.Tell(1, 1), ""},
		{"There is no such suggestion.", study.Tell(4, 1), "there are 4 suggestions"},
		{"Nor such.", study.Tell(-1, 1), "there are 4 suggestions"},
	}
	for _, s := range steps {
		if (s.err == nil) != (s.want == "") || s.err != nil && !strings.Contains(s.err.Error(), s.want) {
			t.Errorf("%s got %v, want %q", s.reason, s.err, s.want)
		}
	}
	best, _ := study.Best()
	if best.Index != 1 {
		t.Errorf("best is %+v: want the first of equals", best)
	}
	var states []optimize.State
	for _, trial := range study.Trials() {
		states = append(states, trial.State)
	}
	want := []optimize.State{optimize.Failed, optimize.Complete, optimize.Complete, optimize.Pending}
	if diff := cmp.Diff(want, states); diff != "" {
		t.Errorf("states: -want, +got:\n%s", diff)
	}
}

// TestResume checks that a search goes on from what was stored as text as if
// it had not been interrupted.
func TestResume(t *testing.T) {
	t.Parallel()
	space := mustSpace(t, optimize.Double("x", 0, 1), optimize.Double("y", 0.1, 0.9).By(0.1), optimize.Categorical("z", "a", "b"))
	for _, name := range []string{"random", "sobol"} {
		sampler := func() optimize.Sampler {
			s, err := optimize.New(name, nil, optimize.Problem{Space: space, Seed: 42})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		study, history := optimize.NewStudy(space, optimize.Options{Sampler: sampler()}), optimize.NewHistory(space, optimize.Minimize)
		for range 10 {
			trial, err := study.Ask(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			p, err := space.Parse(trial.Point.Assignments())
			if err != nil {
				t.Fatal(err)
			}
			history.Add(p)
		}
		resumed := optimize.ResumeStudy(history, sampler())
		want, err := study.Ask(t.Context())
		got, errResumed := resumed.Ask(t.Context())
		if err != nil || errResumed != nil || want.Point.String() != got.Point.String() {
			t.Errorf("%s goes on with %v, %v: want %v, %v", name, got.Point, errResumed, want.Point, err)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	space := mustSpace(t, optimize.Double("x", 0, 1), optimize.Int("n", 0, 8).By(2), optimize.Categorical("c", "a", "b"))
	type as = []optimize.Assignment
	tests := map[string]struct {
		reason      string
		assignments as
		want        string // the point, or part of the error
		fails       bool
	}{
		"AnyOrder": {"The order does not matter.", as{{"c", "b"}, {"n", "4"}, {"x", "0.5"}}, "x=0.5 n=4 c=b", false},
		"Spelling": {"Numbers may be spelled otherwise.", as{{"x", "5e-1"}, {"n", "4.0"}, {"c", "b"}}, "x=0.5 n=4 c=b", false},
		"Missing":  {"Each parameter has a value.", as{{"x", "0.5"}, {"n", "4"}}, `"c" has no value`, true},
		"Twice":    {"And one only.", as{{"x", "0.5"}, {"x", "0.5"}, {"n", "4"}}, `"x" is assigned twice`, true},
		"Unknown":  {"No other has one.", as{{"y", "1"}}, `"y" is not in the space`, true},
		"OffStep":  {"Values are on their step.", as{{"n", "3"}}, "multiple of its step", true},
		"OutOf":    {"Values are in range.", as{{"x", "1.5"}}, "not between 0 and 1", true},
		"NotOne":   {"Values are in the list.", as{{"c", "d"}}, "not in its list", true},
		"Word":     {"Numbers are numbers.", as{{"x", "NaN"}}, "not a number", true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := space.Parse(tc.assignments)
			if tc.fails {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("%s Parse: got %v, want an error that says %q", tc.reason, err, tc.want)
				}
				return
			}
			if err != nil || p.String() != tc.want {
				t.Errorf("%s Parse: got %v, %v; want %s", tc.reason, p, err, tc.want)
			}
		})
	}
}

func TestPoint(t *testing.T) {
	t.Parallel()
	space := mustSpace(t, optimize.Int("n", 3, 3), optimize.Discrete("d", 0.25), optimize.Categorical("c", "a"))
	p := space.At(0)
	if p.Int("n") != 3 || p.Float("n") != 3 || p.Float("d") != 0.25 || p.Text("c") != "a" || p.Text("d") != "0.25" {
		t.Errorf("values of %v are not its own", p)
	}
	for name, wrong := range map[string]func(){
		"unknown":  func() { p.Float("x") },
		"text":     func() { p.Float("c") },
		"not int":  func() { p.Int("d") },
		"no point": func() { optimize.Point{}.Text("n") },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: want a panic, because the program is wrong", name)
				}
			}()
			wrong()
		}()
	}
}
