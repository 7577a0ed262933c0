// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strconv"
	"strings"
	"testing"
)

// tuned runs the example that tunes a PyTorchJob. Its first two trials cannot be
// stopped, and those with a small step would train for minutes if they were not.
func (s *server) tuned(t *testing.T) {
	t.Helper()
	s.succeeds(t, root+"/examples/training/tune-pytorch.yaml")
	list := s.trialsOf("tune-pytorch")
	if len(list) != 6 {
		t.Errorf("%d trials exist, want 6", len(list))
	}
	small := 0
	for _, trial := range list {
		lr, err := strconv.ParseFloat(strings.TrimPrefix(assignments(&trial), "lr="), 64)
		if err != nil {
			t.Fatal(err)
		}
		_, _, stopped := condition(&trial, "EarlyStopped")
		_, _, succeeded := condition(&trial, "Succeeded")
		if stopped == succeeded || lr < 0.002 && !stopped || lr > 0.05 && !succeeded {
			t.Errorf("trial %s with lr=%v: %v", trial.GetName(), lr, trial.Object["status"])
		}
		if lr < 0.002 {
			small++
			s.vanishes(t, "katib.kubeflow.org/trial="+trial.GetName())
		}
	}
	if small == 0 {
		t.Error("no trial had a small step: that shows nothing")
	}
}
