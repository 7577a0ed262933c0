// SPDX-License-Identifier: Apache-2.0

package diwan_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/observation"
)

// TestObjectives searches for small x and great 100-x at the same time, where x
// is not to be above 60: all trials are as good as each other but those above.
func TestObjectives(t *testing.T) {
	for _, algorithm := range []string{"random", "tpe", "nsga2", "auto"} {
		t.Run(algorithm, func(t *testing.T) {
			var l *lab
			ready := make(chan struct{})
			l = newLab(t, func(ctx context.Context, pod *corev1.Pod) (string, int32) {
				<-ready
				x, err := strconv.Atoi(parameterOf(pod))
				if err != nil {
					return "", 1
				}
				var points []observation.Point
				for metric, value := range map[string]int{"loss": -x, "cost": x, "memory": x} {
					points = append(points, observation.Point{Time: time.Now(), Metric: metric, Value: strconv.Itoa(value)})
				}
				trial := observation.Trial{Namespace: pod.Namespace, Name: pod.Labels[v1beta1.LabelTrial]}
				if err := l.store.Append(ctx, trial, observation.Batch{Source: "program", To: 1, Points: points}); err != nil && ctx.Err() == nil {
					l.t.Error(err)
				}
				return "", 0
			})
			close(ready)
			e := l.experiment("several", 3, 12, func(e *v1beta1.Experiment) {
				e.Spec.Algorithm.AlgorithmName = algorithm
				e.Spec.Objective.AdditionalObjectives = []v1beta1.AdditionalObjective{{Type: v1beta1.ObjectiveTypeMinimize, MetricName: "cost"}}
				e.Spec.Objective.Constraints = []v1beta1.MetricConstraint{{MetricName: "memory", Max: ptr.To(60.0)}}
			})
			l.waitFor(e, v1beta1.ConditionSucceeded, v1beta1.ReasonExperimentMaxTrialsReached)
			want, best := map[string]bool{}, 0
			for _, trial := range l.trials() {
				if x, _ := strconv.Atoi(trial.Spec.ParameterAssignments[0].Value); x <= 60 {
					want[trial.Name], best = true, max(best, x)
				}
			}
			if len(want) == 0 || len(e.Status.OptimalTrials) != len(want) {
				t.Errorf("%d trials are optimal, want the %d within the bound", len(e.Status.OptimalTrials), len(want))
			}
			for _, optimal := range e.Status.OptimalTrials {
				if !want[optimal.BestTrialName] || len(optimal.Observation.Metrics) != 3 {
					t.Errorf("trial %s is optimal with %+v", optimal.BestTrialName, optimal)
				}
			}
			if got := e.Status.CurrentOptimalTrial.ParameterAssignments[0].Value; got != strconv.Itoa(best) {
				t.Errorf("the best by the first objective has x=%s, want %d", got, best)
			}
		})
	}
}
