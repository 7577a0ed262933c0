// SPDX-License-Identifier: Apache-2.0

package optimize_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"diwan.dev/diwan/optimize"
)

// TestNoSpace makes everything that needs a space without one: a program that
// did not look at the error of NewSpace is told so, and does not panic.
func TestNoSpace(t *testing.T) {
	t.Parallel()
	for name, space := range map[string]*optimize.Space{"nil": nil, "zero": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, a := range optimize.Known() {
				_, err := optimize.New(a.Name, required(a.Name), optimize.Problem{Space: space})
				if !errors.Is(err, optimize.ErrNoSpace) {
					t.Errorf("New(%s): got %v, want ErrNoSpace", a.Name, err)
				}
			}
			if _, err := optimize.NewTransfer(optimize.NewRandom(1), space, nil, 1, optimize.DefaultTransferConfig()); !errors.Is(err, optimize.ErrNoSpace) {
				t.Errorf("NewTransfer: got %v, want ErrNoSpace", err)
			}
			if _, err := optimize.PreviewSearch(t.Context(), optimize.NewRandom(1), space, "epochs", optimize.Budget{MaxTrials: 1}); !errors.Is(err, optimize.ErrNoSpace) {
				t.Errorf("PreviewSearch: got %v, want ErrNoSpace", err)
			}
			if ranked := optimize.RankSources(optimize.NewHistory(space), []*optimize.History{optimize.NewHistory(space)}); len(ranked) != 0 {
				t.Errorf("RankSources: got %v, want none", ranked)
			}
			for _, sampler := range []optimize.Sampler{nil, optimize.NewRandom(1)} {
				study := optimize.NewStudy(space, optimize.Options{Sampler: sampler})
				if _, err := study.Ask(t.Context()); !errors.Is(err, optimize.ErrNoSpace) {
					t.Errorf("Ask of a study with the sampler %v: got %v, want ErrNoSpace", sampler, err)
				}
				if _, ok := study.Best(); ok || len(study.Trials()) != 0 {
					t.Error("a study without a space has trials")
				}
			}
			if _, err := optimize.NewRandom(1).Sample(t.Context(), optimize.NewHistory(space)); !errors.Is(err, optimize.ErrNoSpace) {
				t.Errorf("Sample: got %v, want ErrNoSpace", err)
			}
		})
	}
}

// required are the settings that an algorithm cannot do without.
func required(name string) map[string]string {
	switch name {
	case "hyperband", "asha", "bohb":
		return map[string]string{"resource_name": "epochs", "r_l": "9"}
	case "pbt":
		return map[string]string{"suggestion_trial_dir": "/checkpoints", "n_population": "5", "truncation_threshold": "0.2"}
	}
	return nil
}

// TestCheckSettingsWithoutSpace finds what is wrong with settings where the
// space is not known yet.
func TestCheckSettingsWithoutSpace(t *testing.T) {
	t.Parallel()
	for _, a := range optimize.Known() {
		if err := optimize.CheckSettings(a.Name, required(a.Name), optimize.Problem{}); err != nil {
			t.Errorf("%s: %v, although nothing is wrong with its settings", a.Name, err)
		}
		if a.Name == "darts" { // whose settings are its program's
			continue
		}
		for setting, want := range map[string]string{"random_state": `random_state is "x"`, "guess": `unknown setting "guess"`} {
			settings := required(a.Name)
			if settings == nil {
				settings = map[string]string{}
			}
			settings[setting] = "x"
			if err := optimize.CheckSettings(a.Name, settings, optimize.Problem{}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s with %s: got %v, want %q", a.Name, setting, err, want)
			}
		}
	}
	if err := optimize.CheckSettings("magic", nil, optimize.Problem{}); !errors.Is(err, optimize.ErrUnknown) {
		t.Errorf("an unknown algorithm: %v", err)
	}
}

// TestInfiniteValuesFail tells values that are not finite, in both directions:
// none becomes the best, in the study or its front.
func TestInfiniteValuesFail(t *testing.T) {
	t.Parallel()
	for _, direction := range []optimize.Direction{optimize.Minimize, optimize.Maximize} {
		space := mustSpace(t, optimize.Double("x", 0, 1))
		study := optimize.NewStudy(space, optimize.Options{Directions: []optimize.Direction{direction}})
		for i, v := range []float64{math.Inf(-1), math.Inf(1), math.NaN(), 7} {
			if _, err := study.Ask(t.Context()); err != nil {
				t.Fatal(err)
			}
			for range 2 { // telling it again changes nothing
				if err := study.Tell(i, v); err != nil {
					t.Fatal(err)
				}
			}
		}
		if best, ok := study.Best(); !ok || best.Index != 3 {
			t.Errorf("direction %v: best is %+v, want the only finite one", direction, best)
		}
		if front := study.Pareto(); len(front) != 1 || front[0].Index != 3 {
			t.Errorf("direction %v: front is %+v, want the only finite one", direction, front)
		}
		if _, err := study.Ask(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, _, err := study.Report(4, 1, math.Inf(-1)); err != nil {
			t.Fatal(err)
		}
		if err := study.Stop(4); err != nil {
			t.Fatal(err)
		}
		if stopped := study.Trials()[4]; stopped.State != optimize.Stopped || len(stopped.Values) != 0 {
			t.Errorf("a trial that was stopped at an infinite value is %+v, want no value", stopped)
		}
	}
}
