// SPDX-License-Identifier: Apache-2.0

package optimize_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"diwan.dev/diwan/optimize"
)

func TestCheckSettings(t *testing.T) {
	t.Parallel()
	continuous := mustSpace(t, optimize.Double("x", 0, 1))
	finite := mustSpace(t, optimize.Double("x", 0, 1).By(0.5), optimize.Int("n", 1, 4))
	type settings = map[string]string
	tests := map[string]struct {
		reason    string
		algorithm string
		settings  settings
		space     *optimize.Space
		trials    int
		want      string // part of the error, "" for none
	}{
		"Random":        {"Random needs nothing.", "random", nil, continuous, 1000, ""},
		"Seed":          {"A seed is a whole number.", "random", settings{"random_state": "10"}, continuous, 0, ""},
		"BadSeed":       {"And no other.", "random", settings{"random_state": "-1"}, continuous, 0, `random_state is "-1"`},
		"WordSeed":      {"Nor a word.", "grid", settings{"random_state": "x"}, finite, 0, `random_state is "x"`},
		"Unknown":       {"Settings are known.", "random", settings{"seed": "1"}, continuous, 0, `unknown setting "seed"`},
		"Grid":          {"A grid may be visited as a whole.", "grid", nil, finite, 12, ""},
		"GridTooMany":   {"But not for longer.", "grid", nil, finite, 13, "space has 12 points"},
		"GridEndless":   {"A grid needs steps.", "grid", nil, continuous, 1, `parameter "x" has no step`},
		"Sobol":         {"Sobol needs nothing.", "sobol", nil, continuous, 0, ""},
		"SobolPlain":    {"It may be plain.", "sobol", settings{"scramble": "false"}, continuous, 0, ""},
		"SobolScramble": {"Or not, but nothing else.", "sobol", settings{"scramble": "twice"}, continuous, 0, `scramble is "twice"`},
		"TPE":           {"All of hyperopt's and Optuna's.", "tpe", settings{"gamma": "0.3", "prior_weight": "2", "n_EI_candidates": "30", "n_startup_trials": "0", "random_state": "1"}, continuous, 0, ""},
		"TPEGamma":      {"Gamma is a part.", "tpe", settings{"gamma": "1"}, continuous, 0, `setting gamma is "1": want a number between 0 and 1`},
		"TPEPrior":      {"A prior has a weight.", "tpe", settings{"prior_weight": "0"}, continuous, 0, `prior_weight is "0"`},
		"TPECandidates": {"There is a best of one at least.", "tpe", settings{"n_EI_candidates": "0"}, continuous, 0, `n_EI_candidates is "0"`},
		"Multivariate":  {"All of Optuna's.", "multivariate-tpe", settings{"n_startup_trials": "5", "n_ei_candidates": "0", "random_state": "1"}, continuous, 0, ""},
		"Negative":      {"Numbers are from 0.", "multivariate-tpe", settings{"n_startup_trials": "-1"}, continuous, 0, `n_startup_trials is "-1"`},
		"NoGamma":       {"It has no other.", "multivariate-tpe", settings{"gamma": "0.3"}, continuous, 0, `unknown setting "gamma"`},
		"Never":         {"What nobody knows says what there is.", "guess", nil, continuous, 0, "unknown algorithm"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := optimize.CheckSettings(tc.algorithm, tc.settings, optimize.Problem{Space: tc.space, Budget: optimize.Budget{MaxTrials: tc.trials}})
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s CheckSettings: got %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

func TestKnown(t *testing.T) {
	t.Parallel()
	space := mustSpace(t, optimize.Int("n", 1, 4), optimize.Int("epochs", 1, 9))
	for _, a := range optimize.Known() {
		settings := map[string]string{}
		if slices.Contains(a.Settings, "resource_name") { // required there
			settings = map[string]string{"resource_name": "epochs", "r_l": "9"}
		}
		if _, err := optimize.New(a.Name, settings, optimize.Problem{Space: space}); errors.Is(err, optimize.ErrUnknown) {
			t.Errorf("algorithm %s: New: %v", a.Name, err)
		}
	}
	if _, err := optimize.New("guess", nil, optimize.Problem{Space: space}); !errors.Is(err, optimize.ErrUnknown) {
		t.Errorf("New of an unknown algorithm: %v", err)
	}
}

// TestSeedSetting checks that random_state decides, and that a grid goes in
// order unless it is set.
func TestSeedSetting(t *testing.T) {
	t.Parallel()
	space := mustSpace(t, optimize.Int("n", 0, 99))
	run := func(name string, settings map[string]string, seed uint64) []int {
		sampler, err := optimize.New(name, settings, optimize.Problem{Space: space, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		study := optimize.NewStudy(space, optimize.Options{Sampler: sampler})
		var values []int
		for range 20 {
			trial, err := study.Ask(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, trial.Point.Int("n"))
		}
		return values
	}
	state := map[string]string{"random_state": "7"}
	for _, name := range []string{"random", "grid", "sobol"} {
		if one, other := run(name, state, 1), run(name, state, 2); !slices.Equal(one, other) {
			t.Errorf("%s: random_state 7 gives %v and %v", name, one, other)
		}
	}
	if got := run("grid", nil, 1); !slices.IsSorted(got) {
		t.Errorf("grid without random_state goes %v: want in order", got)
	}
	if got := run("grid", state, 1); slices.IsSorted(got) {
		t.Errorf("grid with random_state goes %v: want shuffled", got)
	}
}
