// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// testCollector wants what a trial prints to be collected by the container that
// its Pod is given.
func (f *foreign) testCollector(t *testing.T) {
	f.namespace("printing")
	text := strings.Replace(shape{name: "x", trials: 2, parallel: 2, command: "echo loss=${trialParameters.x}"}.manifest(), "namespace: default", "namespace: printing", 1)
	if err := create(t.Context(), f.any, "printing", text); err != nil {
		t.Fatal(err)
	}
	for _, trial := range f.succeeded(t, "printing", "x", 2*time.Minute) {
		metrics, _, _ := unstructured.NestedSlice(trial.Object, "status", "observation", "metrics")
		if value := strings.TrimPrefix(assignments(&trial), "x="); !strings.Contains(fmt.Sprint(metrics), "latest:"+value) {
			t.Errorf("trial %s observed %v, want %s", trial.GetName(), metrics, value)
		}
	}
}
