// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflow "diwan.dev/diwan/api/kubeflow/v1beta1"
)

func TestChooseTrial(t *testing.T) {
	t.Parallel()
	trial := func(name string, age int, condition kubeflow.ConditionType) kubeflow.Trial {
		return kubeflow.Trial{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(noon.Add(-time.Duration(age) * time.Minute))},
			Status:     kubeflow.TrialStatus{Conditions: kubeflow.Conditions{{Type: condition, Status: corev1.ConditionTrue}}},
		}
	}
	done, running, waiting := trial("done", 9, kubeflow.ConditionSucceeded), trial("running", 5, kubeflow.ConditionRunning), trial("waiting", 1, kubeflow.ConditionCreated)
	for _, tc := range []struct {
		reason, best string
		trials       []kubeflow.Trial
		follow       bool
		want         string
	}{
		{"the best", "done", []kubeflow.Trial{done, running, waiting}, false, "done"},
		{"what is followed goes on", "done", []kubeflow.Trial{done, running, waiting}, true, "running"},
		{"none is best yet", "", []kubeflow.Trial{running, waiting}, false, "running"},
		{"none runs yet", "", []kubeflow.Trial{waiting}, false, "waiting"},
		{"what is followed has ended", "done", []kubeflow.Trial{done}, true, "done"},
		{"nothing is there", "", nil, false, ""},
	} {
		got, _ := chooseTrial(tc.best, tc.trials, tc.follow)
		if name := ""; got != nil {
			name = got.Name
			if name != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, name, tc.want)
			}
		} else if tc.want != "" {
			t.Errorf("%s: got none, want %q", tc.reason, tc.want)
		}
	}
}
