// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"diwan.dev/diwan/internal/platform/cli/progress"
)

var noon = metav1.NewTime(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC))

func TestWorkloads(t *testing.T) {
	t.Parallel()
	job := &batchv1.Job{
		Spec: batchv1.JobSpec{Completions: ptr.To[int32](4), Parallelism: ptr.To[int32](2)},
		Status: batchv1.JobStatus{
			Active: 1, Succeeded: 2, Failed: 1,
			Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded", LastTransitionTime: noon}},
		},
	}
	want := progress.Status{
		Condition: progress.ConditionFailed, Reason: "BackoffLimitExceeded", Ended: noon.Time, Planned: 4, Parallel: 2,
		Counts: progress.Counts{Running: 1, Succeeded: 2, Failed: 1},
	}
	if diff := cmp.Diff(want, jobStatus(job)); diff != "" {
		t.Errorf("job (-want +got)\n%s", diff)
	}
	pod := &corev1.Pod{Status: corev1.PodStatus{
		Phase: corev1.PodFailed,
		ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error", FinishedAt: noon},
		}}},
	}}
	want = progress.Status{Condition: progress.ConditionFailed, Reason: "Error", Message: "container main exited with code 3", Ended: noon.Time}
	if diff := cmp.Diff(want, podStatus(pod)); diff != "" {
		t.Errorf("pod (-want +got)\n%s", diff)
	}
}

// TestPods holds how Pods are read.
func TestPods(t *testing.T) {
	t.Parallel()
	terminated := func(code int32, reason string) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, FinishedAt: noon}}
	}
	for _, c := range []struct {
		reason string
		status corev1.PodStatus
		want   progress.Pod
	}{
		{
			"no node has room",
			corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."},
			}},
			progress.Pod{State: progress.Pending, Why: "0/1 nodes are available: 1 Insufficient cpu"},
		},
		{
			"there is no image",
			corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{
				{Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "no such image"}}},
			}},
			progress.Pod{State: progress.Pending, Why: "no such image"},
		},
		{"nobody has looked at it", corev1.PodStatus{}, progress.Pod{State: progress.Pending}},
		{"it runs", corev1.PodStatus{Phase: corev1.PodRunning}, progress.Pod{State: progress.Running}},
		{"it is done", corev1.PodStatus{Phase: corev1.PodSucceeded}, progress.Pod{State: progress.Succeeded}},
		{
			"it was too large",
			corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: terminated(137, "OOMKilled")}}},
			progress.Pod{State: progress.Failed, Failure: "container main exited with code 137 (OOMKilled)"},
		},
		{
			"it was too large, and runs again",
			corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "main", LastTerminationState: terminated(137, "OOMKilled")}}},
			progress.Pod{State: progress.Running, Failure: "container main exited with code 137 (OOMKilled)"},
		},
		{
			"an exit code says enough",
			corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: terminated(3, "Error")}, {Name: "other", State: terminated(0, "Completed")}}},
			progress.Pod{State: progress.Failed, Failure: "container main exited with code 3"},
		},
		{"it was evicted", corev1.PodStatus{Phase: corev1.PodFailed, Message: "The node was low on disk."}, progress.Pod{State: progress.Failed, Failure: "The node was low on disk."}},
	} {
		c.want.Name, c.want.Unit = "p", "t"
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{"trial": "t"}}, Status: c.status}
		if diff := cmp.Diff(c.want, podOf(pod, "trial")); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.reason, diff)
		}
	}
}

// followerOf follows n/x of one of Kubernetes' kinds.
func followerOf(name string) *follower {
	return &follower{Target: Target{ID: progress.ID{Kind: name, Namespace: "n", Name: "x"}}, kind: Kubernetes().Named(name)}
}

// TestGone holds deletions to what they mean: a trial is forgotten, a Pod is gone, and a followed object
// that was seen to end has ended so.
func TestGone(t *testing.T) {
	t.Parallel()
	f := followerOf("Job")
	w := progress.NewWork(f.ID, progress.Pods, progress.Objective{}, true, noon.Time)

	finished := &batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}}}
	f.itselfGone(finished).Apply(w, noon.Time)
	if w.Condition() != progress.ConditionSucceeded {
		t.Errorf("a Job that is cleaned away after its end is %q, want Succeeded", w.Condition())
	}
	events := f.itselfGone(lastOf(cache.DeletedFinalStateUnknown{Obj: &batchv1.Job{}})).Apply(w, noon.Time)
	if len(events) != 1 || events[0].Reason != "Deleted" || events[0].Message != "Job x was deleted" {
		t.Errorf("the deletion of a running Job is told as %+v", events)
	}
	if got := f.trialGone(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "t"}}); got.removed != "t" {
		t.Errorf("the deletion of a trial is told as %+v", got)
	}
	if got := f.podGone(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}); got.pod == nil || !got.pod.Gone || got.pod.Unit != "p" {
		t.Errorf("the deletion of a Pod is told as %+v", got)
	}
}

// TestWatches holds what is watched of an object: itself, its trials if it searches, and its Pods unless
// it is one.
func TestWatches(t *testing.T) {
	t.Parallel()
	search := &Search{Trial: &corev1.ConfigMap{}, List: &corev1.ConfigMapList{}, Label: "search"}
	kinds := append(Kubernetes(), Kind{Name: "Search", Object: &corev1.Secret{}, List: &corev1.SecretList{}, PodLabel: "of", Search: search})
	for name, want := range map[string][]string{
		"Pod":    {"*v1.Pod metadata.name=x"},
		"Job":    {"*v1.Job metadata.name=x", "*v1.Pod batch.kubernetes.io/job-name=x"},
		"Search": {"*v1.Secret metadata.name=x", "*v1.ConfigMap search=x", "*v1.Pod of=x"},
	} {
		f := &follower{Target: Target{ID: progress.ID{Kind: name, Name: "x"}}, kind: kinds.Named(name)}
		var got []string
		for _, w := range f.watches() {
			which := ""
			if w.which.FieldSelector != nil {
				which += w.which.FieldSelector.String()
			}
			if w.which.LabelSelector != nil {
				which += w.which.LabelSelector.String()
			}
			got = append(got, fmt.Sprintf("%T %s", w.object, which))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("of a %s (-want +got)\n%s", name, diff)
		}
	}
}
