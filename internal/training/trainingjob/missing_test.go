// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

// TestBegun holds when the workers of a job have begun, of whom one that is gone
// then is a failure.
func TestBegun(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, run, state string
		pods               []string
		want               string
	}{
		"Pending":   {"One that waits for its node has done nothing yet, the others have", "{}", "Created", []string{"master-0 Running", "worker-0 Running", "worker-1 Pending"}, "0"},
		"Succeeded": {"One that has succeeded cannot be lost", "{}", "Created begun", []string{"master-0 Pending", "worker-0 Running", "worker-1 Succeeded 0"}, "0"},
		"All":       {"Ranges are as short as can be", "{}", "Created", []string{"master-0 Pending", "worker-0 Running", "worker-1 Running"}, "0-1"},
		"Replaced":  {"One that is made anew has not begun", "{}", "Created Running begun but=worker-1", []string{"master-0 Running", "worker-0 Running", "worker-1 Pending"}, "0"},
		"Suspended": {"Whose Pods are taken away has not", "{suspend: true}", "Created Running begun", []string{"master-0 Running", "worker-0 Running", "worker-1 Running"}, ""},
		"Gang":      {"Nor a gang that begins anew", "{restartScope: Job}", "Created Running begun", []string{"master-0 Failed 1", "worker-0 Running", "worker-1 Running"}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, job := read(t, strings.NewReplacer("POLICY", "OnFailure", "RUN", tc.run).Replace(pytorchJob))
			setState(t, job, tc.state)
			var pods []*corev1.Pod
			for _, description := range tc.pods {
				pods = append(pods, podOf(t, f, job, description))
			}
			status := job.State()
			if p := decide(f, job, have{pods: pods}, noon); p.status != nil {
				status = p.status
			}
			if got := status.ReplicaStatuses[v1.Worker].BegunIndexes; got != tc.want {
				t.Errorf("%s: workers %q have begun, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
