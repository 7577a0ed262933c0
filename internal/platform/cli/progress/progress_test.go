// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the expected renderings under testdata")

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// at is a time, some seconds after the start.
func at(seconds float64) time.Time { return epoch.Add(time.Duration(seconds * float64(time.Second))) }

// digits is an experiment of which some trials have ended.
func digits(ends ...State) *Work {
	w := NewWork(ID{"Experiment", "default", "digits"}, Trials, Objective{Metric: "accuracy", Maximize: true}, true, at(0))
	w.SetStatus(Status{Planned: 12, Parallel: 2}, at(0))
	values := []string{"0.8134", "0.9021", "0.7712", "0.9213", "0.9105", "0.9601", "0.9702", "0.97493036211"}
	for i, state := range ends {
		t := Trial{
			Name: fmt.Sprintf("digits-%08d", i), State: state,
			Parameters: []Parameter{{"lr", "0.012345678901"}, {"momentum", "0.9"}, {"hidden", "32"}},
		}
		if state == Succeeded {
			t.Value = values[i%len(values)]
		}
		if state == Failed {
			t.Message = "Trial has failed. Job reason: BackoffLimitExceeded"
		}
		w.SetTrial(t, false, at(float64(i+1)))
	}
	return w
}

// TestRenderings holds every renderer to the files under testdata.
func TestRenderings(t *testing.T) {
	t.Parallel()
	running := digits(Succeeded, Succeeded, Failed, Succeeded, Succeeded, Succeeded, Running, Running)
	ended := digits(Succeeded, Succeeded, Failed, Succeeded, MetricsUnavailable, Succeeded, Succeeded, Succeeded)
	ended.SetStatus(Status{
		Condition: ConditionSucceeded, Reason: "ExperimentMaxTrialsReached", Message: "Experiment has succeeded because max trial count has reached",
		Planned: 8, Counts: Counts{Succeeded: 6, Failed: 1, MetricsUnavailable: 1},
	}, at(9.25))
	paused := digits(Succeeded)
	paused.SetStatus(Status{Planned: 12, Reason: "ExperimentSuspended", Message: "Experiment is suspended: no more trials are created"}, at(2))
	job := NewWork(ID{"Job", "team", "train"}, Pods, Objective{}, true, at(0))
	job.SetStatus(Status{Planned: 4, Parallel: 2, Counts: Counts{Succeeded: 1, Running: 2}}, at(1))
	failed := NewWork(ID{"Pod", "team", "lone"}, Itself, Objective{}, true, at(0))
	failed.SetStatus(Status{Condition: ConditionFailed, Reason: "Error", Message: "container main exited with code 3"}, at(63))

	cases := map[string][]string{
		"block-wide":   Block([]View{running.View(at(8.4))}, Style{Width: 120}),
		"block-narrow": Block([]View{running.View(at(8.4))}, Style{Width: 40}),
		"block-ascii":  Block([]View{running.View(at(8.4))}, Style{Width: 100, ASCII: true}),
		"block-color":  Block([]View{running.View(at(8.4))}, Style{Width: 60, Color: true}),
		"block-many":   Block([]View{running.View(at(8.4)), job.View(at(8.4)), failed.View(at(8.4))}, Style{Width: 100}),
		"block-start":  Block([]View{digits().View(at(0.5))}, Style{Width: 100}),
		"opening":      {Opening(digits().View(at(0))), Opening(running.View(at(0))), Opening(job.View(at(0)))},
		"summary":      {Summary(running.View(at(8.4)), Style{}), Summary(job.View(at(8.4)), Style{}), Summary(paused.View(at(8.4)), Style{})},
		"result":       Result(ended.View(at(60)), Extra{Logs: "/home/user/logs/0.log"}, Style{}),
		"result-pod":   Result(failed.View(at(70)), Extra{}, Style{}),
		"lines":        lines(),
		"report":       report(t, ended.View(at(60))),
		"reports":      report(t, job.View(at(2)), failed.View(at(70))),
	}
	for name, got := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden(t, name, strings.Join(got, "\n")+"\n")
		})
	}
}

// lines are those of one event of each kind.
func lines() []string {
	w := digits()
	var got []string
	for i, trial := range []Trial{
		{Name: "digits-a", State: Running},
		{Name: "digits-a", State: Succeeded, Value: "0.91234567", Parameters: []Parameter{{"lr", "0.01"}}},
		{Name: "digits-b", State: Succeeded, Value: "0.5", Parameters: []Parameter{{"lr", "0.02"}}},
		{Name: "digits-c", State: Failed, Message: "Job reason: \x1b[31mBackoff\nLimitExceeded"},
		{Name: "digits-d", State: MetricsUnavailable, Message: "Metrics are not available"},
		{Name: "digits-a", State: Succeeded, Value: "0.91234567"},
	} {
		for _, e := range w.SetTrial(trial, false, at(float64(i))) {
			got = append(got, Line(e, Style{}))
		}
	}
	for _, e := range w.SetStatus(Status{Condition: ConditionFailed, Reason: "ExperimentFailed", Message: "max failed count has reached"}, at(9)) {
		got = append(got, Line(e, Style{}))
	}
	return got
}

func report(t *testing.T, views ...View) []string {
	var reports []Report
	for _, v := range views {
		reports = append(reports, NewReport(v))
	}
	text, err := Encode(reports)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got); if that is right, run the test with -rewrite\n%s", path, diff)
	}
}
