// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"os"
	"strings"
	"testing"
)

// TestChartTellsTheVersion wants the chart to tell Kubeflow's SDK the version that
// a laptop does.
func TestChartTellsTheVersion(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../charts/diwan/templates/trainer.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if want := "kubeflow_trainer_version: " + Version + "\n"; !strings.Contains(string(text), want) {
		t.Errorf("the chart does not say %q", want)
	}
}
