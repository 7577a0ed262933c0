// SPDX-License-Identifier: Apache-2.0

package optimize_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"diwan.dev/diwan/optimize"
)

// Previews one round of the Hyperband paper's brackets.
func ExamplePreviewSearch() {
	space, err := optimize.NewSpace(optimize.Double("lr", 1e-4, 1).Log(), optimize.Int("epochs", 1, 81))
	if err != nil {
		panic(err)
	}
	c := optimize.DefaultHyperbandConfig()
	c.Resource = "epochs"
	hyperband, err := optimize.NewHyperband(space, 1, c)
	if err != nil {
		panic(err)
	}
	preview, err := optimize.PreviewSearch(context.Background(), hyperband, space, "epochs", optimize.Budget{MaxTrials: 206})
	if err != nil {
		panic(err)
	}
	for _, stage := range preview.Stages {
		fmt.Printf("%3d trials with %2.0f epochs\n", stage.Trials, stage.Resource)
	}
	fmt.Printf("%.0f epochs, or %.0f when trials continue their parents\n", preview.Total, preview.Continued)
	// Output:
	//  81 trials with  1 epochs
	//  61 trials with  3 epochs
	//  35 trials with  9 epochs
	//  19 trials with 27 epochs
	//  10 trials with 81 epochs
	// 1902 epochs, or 1581 when trials continue their parents
}

func TestPreviewSearch(t *testing.T) {
	t.Parallel()
	space := mustSpace(t, optimize.Double("x", 0, 1), optimize.Discrete("epochs", 10))
	got, err := optimize.PreviewSearch(t.Context(), optimize.NewRandom(1), space, "epochs", optimize.Budget{MaxTrials: 10, Parallel: 4})
	if err != nil {
		t.Fatal(err)
	}
	want := optimize.Preview{Stages: []optimize.Stage{{Resource: 10, Trials: 10}}, Total: 100, Continued: 100, Elapsed: 30}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ten trials, four at once: -want, +got:\n%s", diff)
	}
	finite := mustSpace(t, optimize.Int("n", 1, 3), optimize.Int("epochs", 1, 2))
	if got, err := optimize.PreviewSearch(t.Context(), optimize.NewRandom(1), finite, "epochs", optimize.Budget{MaxTrials: 10}); err != nil || got.Total != 9 {
		t.Errorf("a space of six points: %+v, %v", got, err)
	}
	for reason, err := range map[string]error{
		"resource is \"y\"": second(optimize.PreviewSearch(t.Context(), optimize.NewRandom(1), space, "y", optimize.Budget{MaxTrials: 1})),
		"0 trials":          second(optimize.PreviewSearch(t.Context(), optimize.NewRandom(1), space, "epochs", optimize.Budget{})),
	} {
		if err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("PreviewSearch: got %v, want %q", err, reason)
		}
	}
}

func second(_ optimize.Preview, err error) error { return err }

// TestForAlgorithm checks that Katib's example of hyperband, whose resource has
// the values from 1 to 1 and r_l 2, can be searched.
func TestForAlgorithm(t *testing.T) {
	t.Parallel()
	settings := map[string]string{"resource_name": "num-epochs", "eta": "2", "r_l": "2"}
	declared := []optimize.Parameter{optimize.Double("lr", 0.01, 0.03), optimize.Int("num-epochs", 1, 1)}
	tests := map[string]struct {
		algorithm string
		settings  map[string]string
		declared  optimize.Parameter
		want      optimize.Parameter
	}{
		"Katib":    {"hyperband", settings, declared[1], optimize.Int("num-epochs", 1, 2)},
		"Enough":   {"hyperband", settings, optimize.Int("num-epochs", 1, 9), optimize.Int("num-epochs", 1, 9)},
		"Most":     {"hyperband", settings, optimize.Int("num-epochs", 9, 9), optimize.Int("num-epochs", 1, 9)},
		"Above":    {"hyperband", settings, optimize.Int("num-epochs", 9, 20), optimize.Int("num-epochs", 1, 20)},
		"Double":   {"asha", map[string]string{"resource_name": "num-epochs", "r_l": "0.5"}, optimize.Double("num-epochs", 0.1, 0.1), optimize.Double("num-epochs", 0.1, 0.5)},
		"Wrong":    {"hyperband", map[string]string{"resource_name": "num-epochs", "r_l": "x"}, declared[1], declared[1]},
		"Other":    {"random", settings, declared[1], declared[1]},
		"Discrete": {"hyperband", settings, optimize.Discrete("num-epochs", 1), optimize.Discrete("num-epochs", 1)},
	}
	for name, tc := range tests {
		got := optimize.ForAlgorithm(tc.algorithm, tc.settings, []optimize.Parameter{declared[0], tc.declared})
		if diff := cmp.Diff([]optimize.Parameter{declared[0], tc.want}, got); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", name, diff)
		}
	}
	space := mustSpace(t, optimize.ForAlgorithm("hyperband", settings, declared)...)
	if err := optimize.CheckSettings("hyperband", settings, optimize.Problem{Space: space}); err != nil {
		t.Errorf("Katib's example: %v", err)
	}
}
