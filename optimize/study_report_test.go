// SPDX-License-Identifier: Apache-2.0

package optimize_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"diwan.dev/diwan/optimize"
	"diwan.dev/diwan/optimize/stopping"
)

// TestReport follows a study with the median rule by hand, and one that is
// resumed from its history and told the same reports.
func TestReport(t *testing.T) {
	t.Parallel()
	rule, err := stopping.New("medianstop", map[string]string{"start_step": "2"})
	if err != nil {
		t.Fatal(err)
	}
	space := mustSpace(t, optimize.Int("n", 0, 9))
	study := optimize.NewStudy(space, optimize.Options{Stopping: rule, Directions: []optimize.Direction{optimize.Maximize}})
	ask := func() int {
		trial, err := study.Ask(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return trial.Index
	}
	report := func(s *optimize.Study, index, step int, value float64) string {
		stop, reason, err := s.Report(index, step, value)
		if err != nil || stop != (reason != "") {
			t.Fatalf("Report: %v, %q, %v", stop, reason, err)
		}
		return reason
	}
	for range 3 {
		i := ask()
		for step := 1; step <= 3; step++ {
			if reason := report(study, i, step, float64(i+5)); reason != "" {
				t.Fatalf("trial %d stops: %s", i, reason)
			}
		}
		if err := study.Tell(i, float64(i+5)); err != nil {
			t.Fatal(err)
		}
	}
	slow := ask()
	report(study, slow, 1, 1)
	want := report(study, slow, 2, 2)
	if !strings.Contains(want, "2, is below 6, the median") {
		t.Fatalf("trial %d: reason %q", slow, want)
	}

	history := optimize.NewHistory(space, optimize.Maximize)
	for _, trial := range study.Trials() {
		if i := history.Add(trial.Point); trial.Complete() {
			if err := history.Tell(i, trial.Result); err != nil {
				t.Fatal(err)
			}
		}
	}
	resumed := optimize.ResumeStudy(history, optimize.NewRandom(1))
	resumed.StopEarly(rule)
	for i := range 3 {
		for step := 1; step <= 3; step++ {
			report(resumed, i, step, float64(i+5))
		}
	}
	report(resumed, slow, 1, 1)
	if got := report(resumed, slow, 2, 2); got != want {
		t.Errorf("resumed: reason %q, want %q", got, want)
	}

	if err := study.Stop(slow); err != nil {
		t.Fatal(err)
	}
	if trial := study.Trials()[slow]; trial.State != optimize.Stopped || trial.Value() != 2 || trial.Step != 2 {
		t.Errorf("stopped trial is %+v", trial)
	}
	if reason := report(study, slow, 3, 0); reason != "" {
		t.Errorf("a trial that has ended stops: %s", reason)
	}
	if _, _, err := study.Report(99, 1, 1); err == nil || !strings.Contains(err.Error(), "there are 4 suggestions") {
		t.Errorf("Report of a suggestion that there is not: %v", err)
	}
	if err := study.Stop(99); err == nil {
		t.Error("Stop of a suggestion that there is not is accepted")
	}
}

// Trains with several learning rates, each as long as it is worth it.
func ExampleStudy_Report() {
	space, err := optimize.NewSpace(optimize.Double("lr", 0.001, 1).Log())
	if err != nil {
		panic(err)
	}
	rule, err := stopping.New("successivehalving", map[string]string{"min_resource": "1"})
	if err != nil {
		panic(err)
	}
	study := optimize.NewStudy(space, optimize.Options{Sampler: optimize.NewRandom(1), Stopping: rule})
	epochs := 0
	train := func(_ context.Context, t optimize.Trial) ([]float64, error) {
		loss := 1.0
		for epoch := 1; epoch <= 64; epoch++ {
			loss *= 1 - math.Exp(-math.Abs(math.Log(t.Point.Float("lr")/0.03)))/10
			epochs++
			stop, reason, err := study.Report(t.Index, epoch, loss)
			if err != nil {
				return nil, err
			}
			if stop {
				return nil, fmt.Errorf("%w: %s", optimize.ErrStopped, reason)
			}
		}
		return []float64{loss}, nil
	}
	if err := study.Run(context.Background(), 50, 1, train, nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	best, _ := study.Best()
	fmt.Printf("lr=%.2f after %d epochs instead of %d\n", best.Point.Float("lr"), epochs, 50*64)
	// Output: lr=0.03 after 299 epochs instead of 3200
}
