// SPDX-License-Identifier: Apache-2.0

package diwan_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/testing/clustertest"
)

// quota bounds how many objects of a resource the namespace may have.
func (l *lab) quota(resourceName corev1.ResourceName, most string) *corev1.ResourceQuota {
	l.t.Helper()
	kube, err := kubernetes.NewForConfig(cluster.Cluster(l.t).RESTConfig())
	if err != nil {
		l.t.Fatal(err)
	}
	return clustertest.Quota(l.t, kube, l.namespace, corev1.ResourceList{resourceName: resource.MustParse(most)})
}

// heldByQuota counts the trials that wait for room.
func (l *lab) heldByQuota() int {
	held := 0
	for _, trial := range l.trials() {
		if c := trial.Status.Conditions.Get(v1beta1.ConditionRunning); c != nil && c.Status == corev1.ConditionFalse &&
			c.Reason == v1beta1.ReasonRunQuotaExceeded && strings.Contains(c.Message, "exceeded quota: quota") && !trial.IsCompleted() {
			held++
		}
	}
	return held
}

// TestQuotaHoldsTrialsBack lets fewer Jobs, or Pods, exist than there are trials.
func TestQuotaHoldsTrialsBack(t *testing.T) {
	for _, limited := range []corev1.ResourceName{"count/jobs.batch", "pods"} {
		t.Run(strings.ReplaceAll(string(limited), "/", " "), func(t *testing.T) {
			g := newGated()
			var most atomic.Int32
			l := newLab(t, func(ctx context.Context, pod *corev1.Pod) (string, int32) {
				if n := g.running.Load() + 1; n > most.Load() {
					most.Store(n)
				}
				return g.run(ctx, pod)
			})
			l.quota(limited, "1")
			e := l.experiment("held", 3, 4)
			l.eventually(func() string {
				if held := l.heldByQuota(); held != 2 {
					return fmt.Sprintf("2 trials that wait for room; %d do", held)
				}
				return ""
			})
			g.waitFor(l, 1)
			l.wantEvents(v1beta1.ReasonRunQuotaExceeded, 2)
			close(g.gate)
			l.waitFor(e, v1beta1.ConditionSucceeded, v1beta1.ReasonExperimentMaxTrialsReached)
			if e.Status.TrialsSucceeded != 4 || most.Load() != 1 {
				t.Errorf("%d at once, and the experiment came to %+v", most.Load(), e.Status)
			}
		})
	}
}

// TestQuotaOfTrials lets fewer trials exist than the experiment is to make.
func TestQuotaOfTrials(t *testing.T) {
	l := newLab(t, report)
	q := l.quota("count/trials.kubeflow.org", "2")
	e := l.experiment("narrow", 2, 5)
	l.waitFor(e, v1beta1.ConditionRunning, v1beta1.ReasonExperimentQuotaExceeded)
	if c := e.Status.Conditions.Get(v1beta1.ConditionRunning); !strings.Contains(c.Message, "exceeded quota: quota, requested: count/trials.kubeflow.org=1") {
		t.Errorf("the experiment says %q", c.Message)
	}
	l.eventually(func() string {
		if l.get(e); e.Status.TrialsSucceeded == 2 {
			return ""
		}
		return "the end of the trials that there is room for"
	})
	before := q.DeepCopy()
	q.Spec.Hard["count/trials.kubeflow.org"] = resource.MustParse("5")
	if err := l.client.Patch(t.Context(), q, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	l.waitFor(e, v1beta1.ConditionSucceeded, v1beta1.ReasonExperimentMaxTrialsReached)
	if e.Status.TrialsSucceeded != 5 || e.Status.TrialsFailed != 0 {
		t.Errorf("the experiment came to %+v", e.Status)
	}
	l.wantEvents(v1beta1.ReasonExperimentQuotaExceeded, 1)
}
