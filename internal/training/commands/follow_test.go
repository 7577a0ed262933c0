// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobset "diwan.dev/diwan/api/jobset/v1alpha2"
	v1 "diwan.dev/diwan/api/kubeflow/v1"
	trainer "diwan.dev/diwan/api/trainer/v1alpha1"
	"diwan.dev/diwan/internal/platform/cli/follow"
	"diwan.dev/diwan/internal/platform/cli/progress"
)

var noon = metav1.NewTime(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC))

func TestTrainingJob(t *testing.T) {
	t.Parallel()
	job := &v1.PyTorchJob{
		Spec: v1.PyTorchJobSpec{PyTorchReplicaSpecs: map[v1.ReplicaType]*v1.ReplicaSpec{v1.Master: {}, v1.Worker: {Replicas: ptr.To[int32](3)}, "Odd": nil}},
		Status: v1.JobStatus{
			StartTime: &noon, CompletionTime: &noon,
			ReplicaStatuses: map[v1.ReplicaType]*v1.ReplicaStatus{v1.Master: {Succeeded: 1}, v1.Worker: {Active: 2, Failed: 1}, "Odd": nil},
			Conditions: []v1.JobCondition{
				{Type: v1.JobRunning, Status: corev1.ConditionFalse, Reason: "PyTorchJobRunning"},
				{Type: v1.JobFailed, Status: corev1.ConditionTrue, Reason: "PyTorchJobFailed", Message: "because"},
			},
		},
	}
	want := progress.Status{
		Condition: progress.ConditionFailed, Reason: "PyTorchJobFailed", Message: "because", Started: noon.Time, Ended: noon.Time,
		Planned: 4, Parallel: 4, Counts: progress.Counts{Running: 2, Succeeded: 1, Failed: 1},
	}
	if diff := cmp.Diff(want, trainingStatus(job)); diff != "" {
		t.Errorf("status (-want +got)\n%s", diff)
	}
	kinds := follow.Kinds(followed())
	if !kinds.Followable("kubeflow.org/v2beta1", "MPIJob") || kinds.Followable("kubeflow.org/v2beta1", "TFJob") {
		t.Error("of v2beta1 MPIJobs can be followed, and nothing else")
	}
	for kind, want := range map[string]bool{"PyTorchJob": true, "MPIJob": true, "Trial": false} {
		if got := kinds.Followable("kubeflow.org/v1", kind); got != want {
			t.Errorf("a %s can be followed: %v, want %v", kind, got, want)
		}
	}
}

func TestTrainJob(t *testing.T) {
	t.Parallel()
	since := metav1.NewTime(noon.Add(-time.Minute))
	job := &trainer.TrainJob{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: since}}
	job.Status.JobsStatus = []trainer.JobStatus{{Name: "data", Succeeded: ptr.To(int32(1))}, {Name: "node", Active: ptr.To(int32(1))}}
	want := progress.Status{Started: since.Time, Counts: progress.Counts{Running: 1, Succeeded: 1}}
	if diff := cmp.Diff(want, trainJobStatus(job)); diff != "" {
		t.Errorf("a job that runs (-want +got):\n%s", diff)
	}
	job.Status.Conditions = []metav1.Condition{{Type: "Failed", Status: "True", Reason: "FailedJobs", Message: "m", LastTransitionTime: noon}}
	want.Condition, want.Reason, want.Message, want.Ended = progress.ConditionFailed, "FailedJobs", "m", noon.Time
	if diff := cmp.Diff(want, trainJobStatus(job)); diff != "" {
		t.Errorf("a job that failed (-want +got):\n%s", diff)
	}
}

func TestJobSet(t *testing.T) {
	t.Parallel()
	set := &jobset.JobSet{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: noon}}
	set.Spec.ReplicatedJobs = []jobset.ReplicatedJob{{Name: "driver"}, {Name: "workers", Replicas: ptr.To[int32](3)}}
	set.Status.ReplicatedJobsStatus = []jobset.ReplicatedJobStatus{{Name: "driver", Succeeded: 1}, {Name: "workers", Active: 2, Failed: 1}}
	set.Status.Conditions = []metav1.Condition{{Type: jobset.ConditionSuspended, Status: "True", Reason: "SuspendedJobs", Message: "s", LastTransitionTime: noon}}
	want := progress.Status{
		Started: noon.Time, Planned: 4, Counts: progress.Counts{Running: 2, Succeeded: 1, Failed: 1}, Reason: "SuspendedJobs", Message: "s",
	}
	if diff := cmp.Diff(want, jobSetStatus(set)); diff != "" {
		t.Errorf("a set that is suspended (-want +got):\n%s", diff)
	}
	set.Status.Conditions = []metav1.Condition{{Type: jobset.ConditionCompleted, Status: "True", LastTransitionTime: noon}}
	want.Condition, want.Reason, want.Message, want.Ended = progress.ConditionSucceeded, "", "", noon.Time
	if diff := cmp.Diff(want, jobSetStatus(set)); diff != "" {
		t.Errorf("a set that completed (-want +got):\n%s", diff)
	}
	if !follow.Kinds(followed()).Followable(jobset.GroupVersion.String(), "JobSet") {
		t.Error("JobSets cannot be followed")
	}
}
