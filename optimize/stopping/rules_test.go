// SPDX-License-Identifier: Apache-2.0

package stopping_test

import (
	"testing"

	"diwan.dev/diwan/optimize/stopping"
	"diwan.dev/diwan/optimize/stopping/stoppingtest"
)

func mustRule(t *testing.T, name string, settings map[string]string) stopping.Rule {
	t.Helper()
	rule, err := stopping.New(name, settings)
	if err != nil {
		t.Fatal(err)
	}
	return rule
}

func TestMedian(t *testing.T) {
	t.Parallel()
	stoppingtest.Run(t, stoppingtest.Subject{Rule: mustRule(t, "medianstop", nil)})
}

func TestPercentile(t *testing.T) {
	t.Parallel()
	stoppingtest.Run(t, stoppingtest.Subject{Rule: mustRule(t, "percentile", map[string]string{"percentile": "30", "n_warmup_steps": "3", "interval_steps": "2"})})
}

func TestSuccessiveHalving(t *testing.T) {
	t.Parallel()
	stoppingtest.Run(t, stoppingtest.Subject{Rule: mustRule(t, "successivehalving", nil)})
}

func TestHyperband(t *testing.T) {
	t.Parallel()
	stoppingtest.Run(t, stoppingtest.Subject{Rule: mustRule(t, "hyperband", nil)})
}

func TestThreshold(t *testing.T) {
	t.Parallel()
	stoppingtest.Run(t, stoppingtest.Subject{Rule: mustRule(t, "threshold", map[string]string{"upper": "0.7", "n_warmup_steps": "20"}), Absolute: true, Alone: true})
}

func TestPatience(t *testing.T) {
	t.Parallel()
	stoppingtest.Run(t, stoppingtest.Subject{Rule: mustRule(t, "patience", map[string]string{"patience": "3"}), Alone: true})
}

func TestPatientMedian(t *testing.T) {
	t.Parallel()
	stoppingtest.Run(t, stoppingtest.Subject{Rule: mustRule(t, "patience", map[string]string{"patience": "3", "rule": "medianstop", "start_step": "2"})})
}

func TestWilcoxon(t *testing.T) {
	t.Parallel()
	stoppingtest.Run(t, stoppingtest.Subject{Rule: mustRule(t, "wilcoxon", nil)})
}

func TestFitting(t *testing.T) {
	t.Parallel()
	stoppingtest.Run(t, stoppingtest.Subject{Rule: mustRule(t, "curvefitting", nil)})
}

func TestForget(t *testing.T) {
	t.Parallel()
	c := stopping.NewCurves(stopping.Minimize)
	for trial := range 3 {
		c.Report(trial, 1, float64(trial))
	}
	c.Forget(1)
	c.Forget(7) // nobody knows it
	if _, _, ok := c.Last(1); ok {
		t.Error("a forgotten trial has a last report")
	}
	c.Report(1, 1, 9) // it starts over
	for trial, want := range []float64{0, 9, 2} {
		if _, value, ok := c.Last(trial); !ok || value != want {
			t.Errorf("trial %d has %v, %v; want %v", trial, value, ok, want)
		}
	}
}
