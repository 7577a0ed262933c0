// SPDX-License-Identifier: Apache-2.0

package trainjob

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobset "diwan.dev/diwan/api/jobset/v1alpha2"
	"diwan.dev/diwan/api/trainer/v1alpha1"
)

var epoch = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))

func TestDecide(t *testing.T) {
	t.Parallel()
	type job = func(*v1alpha1.TrainJob)
	type set = func(*jobset.JobSet)
	deadline := func(j *v1alpha1.TrainJob) { j.Spec.ActiveDeadlineSeconds = 10 }
	suspended := func(j *v1alpha1.TrainJob) { j.Spec.Suspend = ptr.To(true) }
	has := func(condition string, status metav1.ConditionStatus, reason string, at time.Duration) job {
		return func(j *v1alpha1.TrainJob) {
			j.Status.Conditions = append(j.Status.Conditions, metav1.Condition{Type: condition, Status: status, Reason: reason,
				LastTransitionTime: metav1.NewTime(epoch.Add(at))})
		}
	}
	all := func(changes ...job) job {
		return func(j *v1alpha1.TrainJob) {
			for _, change := range changes {
				change(j)
			}
		}
	}
	runs := func(*jobset.JobSet) {}
	rests := func(s *jobset.JobSet) { s.Spec.Suspend = ptr.To(true) }
	leaves := func(s *jobset.JobSet) { s.DeletionTimestamp, s.Finalizers = &epoch, []string{holdUntilRead} }
	ends := func(condition, reason string) set {
		return func(s *jobset.JobSet) {
			s.Status.Conditions = []metav1.Condition{{Type: condition, Status: metav1.ConditionTrue, Reason: reason, LastTransitionTime: epoch}}
			s.Finalizers = []string{holdUntilRead}
		}
	}
	type result struct {
		Conditions                            map[string]string
		Make, Suspend, Renew, Release, Delete bool
		After                                 time.Duration
	}
	is := func(pairs ...string) map[string]string {
		m := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = pairs[i+1]
		}
		return m
	}
	cases := []struct {
		reason string
		job    job
		set    set
		late   time.Duration
		want   result
	}{
		{"a new job", nil, nil, 0, result{Make: true, Conditions: is()}},
		{"it runs: its JobSet stays as it is", nil, runs, 0, result{Conditions: is()}},
		{"suspended before it began: its JobSet is made suspended", suspended, nil, 0, result{Make: true, Conditions: is("Suspended", "True Suspended")}},
		{"suspended while it runs", suspended, runs, 0, result{Suspend: true, Conditions: is("Suspended", "True Suspended")}},
		{"suspended: it may change", suspended, rests, 0, result{Renew: true, Conditions: is("Suspended", "True Suspended")}},
		{"resumed", has("Suspended", metav1.ConditionTrue, "Suspended", 0), rests, 0, result{Renew: true, Conditions: is("Suspended", "False Resumed")}},
		{"its JobSet is complete", nil, ends(jobset.ConditionCompleted, "AllJobsCompleted"), 0, result{Conditions: is("Complete", "True AllJobsCompleted")}},
		{"its JobSet has failed", nil, ends(jobset.ConditionFailed, "ReachedMaxRestarts"), 0, result{Conditions: is("Failed", "True ReachedMaxRestarts")}},
		{"that is written down: the JobSet may go", has("Failed", metav1.ConditionTrue, "FailedJobs", 0), ends(jobset.ConditionFailed, "FailedJobs"), 0,
			result{Release: true, Conditions: is("Failed", "True FailedJobs")}},
		{"it has gone: nothing is made again", has("Failed", metav1.ConditionTrue, "FailedJobs", 0), nil, 0, result{Conditions: is("Failed", "True FailedJobs")}},
		{"someone deletes the JobSet of a job that runs", nil, leaves, 0, result{Release: true, Conditions: is()}},
		{"before the deadline", deadline, runs, 4 * time.Second, result{After: 6 * time.Second, Conditions: is()}},
		{"at the deadline", deadline, runs, 10 * time.Second, result{Conditions: is("Failed", "True DeadlineExceeded")}},
		{"after it, when that is written down", all(deadline, has("Failed", metav1.ConditionTrue, "DeadlineExceeded", 0)), runs, 20 * time.Second,
			result{Delete: true, Conditions: is("Failed", "True DeadlineExceeded")}},
		{"the deadline does not run while a job is suspended", all(deadline, suspended), rests, time.Hour, result{Renew: true, Conditions: is("Suspended", "True Suspended")}},
		{"it begins anew when the job is resumed", all(deadline, has("Suspended", metav1.ConditionFalse, "Resumed", time.Hour)), runs, time.Hour + 3*time.Second,
			result{After: 7 * time.Second, Conditions: is("Suspended", "False Resumed")}},
		{"a job that ended in time does not fail later", deadline, ends(jobset.ConditionCompleted, "AllJobsCompleted"), time.Hour, result{Conditions: is("Complete", "True AllJobsCompleted")}},
	}
	for _, c := range cases {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			j := &v1alpha1.TrainJob{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: epoch}}
			if c.job != nil {
				c.job(j)
			}
			j.SetDefaults()
			var s *jobset.JobSet
			if c.set != nil {
				s = &jobset.JobSet{}
				c.set(s)
			}
			p := Decide(j, s, epoch.Add(c.late))
			got := result{Conditions: is(), Make: p.Make, Suspend: p.Suspend, Renew: p.Renew, Release: p.Release, Delete: p.Delete, After: p.After}
			for _, condition := range p.Status.Conditions {
				got.Conditions[condition.Type] = string(condition.Status) + " " + condition.Reason
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
