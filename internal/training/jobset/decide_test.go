// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"diwan.dev/diwan/api/jobset/v1alpha2"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// newSet is a set of replicated jobs, each of one Job, with its defaults.
func newSet(names ...string) *v1alpha2.JobSet {
	set := &v1alpha2.JobSet{ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "ns", UID: "u"}}
	for _, name := range names {
		set.Spec.ReplicatedJobs = append(set.Spec.ReplicatedJobs, v1alpha2.ReplicatedJob{Name: name})
	}
	set.SetDefaults()
	return set
}

// jobOf is a Job of a set, of an attempt, that ended by a condition unless that
// is empty.
func jobOf(set *v1alpha2.JobSet, name string, attempt int32, end batchv1.JobConditionType, reason string) *batchv1.Job {
	i := slices.IndexFunc(set.Spec.ReplicatedJobs, func(r v1alpha2.ReplicatedJob) bool { return r.Name == name })
	at := set.DeepCopy()
	at.Status.Restarts = attempt
	job := newJob(at, &at.Spec.ReplicatedJobs[i], 0)
	if end != "" {
		job.Status.Conditions = []batchv1.JobCondition{{Type: end, Status: corev1.ConditionTrue, Reason: reason, Message: "it says " + reason, LastTransitionTime: metav1.NewTime(epoch)}}
	}
	return job
}

func namesOf(jobs []*batchv1.Job) []string {
	var out []string
	for _, j := range jobs {
		out = append(out, j.Name)
	}
	return out
}

// result is what a test looks at of a plan.
type result struct {
	Create, Delete, Suspend, Resume []string
	Conditions                      map[string]string // reasons of those that are true
	Restarts, Counted               int32
	Support, Expired                bool
	After                           time.Duration
}

func resultOf(p Plan) result {
	r := result{
		Create: namesOf(p.Create), Delete: namesOf(p.Delete), Suspend: namesOf(p.Suspend), Resume: namesOf(p.Resume),
		Restarts: p.Status.Restarts, Counted: p.Status.RestartsCountTowardsMax, Support: p.Support, Expired: p.Expired, After: p.After,
	}
	for _, c := range p.Status.Conditions {
		if c.Status == metav1.ConditionTrue {
			if r.Conditions == nil {
				r.Conditions = map[string]string{}
			}
			r.Conditions[c.Type] = c.Reason
		}
	}
	return r
}

func TestDecide(t *testing.T) {
	t.Parallel()
	const done, broken = batchv1.JobComplete, batchv1.JobFailed
	backoff := batchv1.JobReasonBackoffLimitExceeded
	policy := func(max int32, rules ...v1alpha2.FailurePolicyRule) func(*v1alpha2.JobSet) {
		return func(s *v1alpha2.JobSet) {
			s.Spec.FailurePolicy = &v1alpha2.FailurePolicy{MaxRestarts: max, Rules: rules, RestartStrategy: v1alpha2.Recreate}
		}
	}
	after := func(status v1alpha2.DependsOnStatus) func(*v1alpha2.JobSet) {
		return func(s *v1alpha2.JobSet) {
			s.Spec.ReplicatedJobs[1].DependsOn = []v1alpha2.DependsOn{{Name: "a", Status: status}}
		}
	}
	type jobs func(*v1alpha2.JobSet) []*batchv1.Job
	one := func(name string, attempt int32, end batchv1.JobConditionType) jobs {
		return func(s *v1alpha2.JobSet) []*batchv1.Job { return []*batchv1.Job{jobOf(s, name, attempt, end, backoff)} }
	}
	ready := func(s *v1alpha2.JobSet) []*batchv1.Job {
		job := jobOf(s, "a", 0, "", "")
		job.Status.Ready, job.Status.Active = ptr.To(int32(1)), 1
		return []*batchv1.Job{job}
	}
	ended := func(s *v1alpha2.JobSet) {
		p := Plan{}
		p.end(epoch, v1alpha2.ConditionFailed, v1alpha2.ReasonFailedJobs, "m")
		s.Status = p.Status
		s.Spec.TTLSecondsAfterFinished = ptr.To(int32(10))
	}
	suspended := func(s *v1alpha2.JobSet) { s.Spec.Suspend = ptr.To(true) }
	cases := []struct {
		reason string
		change func(*v1alpha2.JobSet)
		jobs   jobs
		late   time.Duration
		want   result
	}{
		{"a new set: all Jobs are made", nil, nil, 0, result{Create: []string{"s-a-0", "s-b-0"}, Support: true}},
		{"what depends on the end of another waits", after(v1alpha2.DependencyComplete), ready, 0, result{Support: true}},
		{"what depends on another being ready is made when it is", after(v1alpha2.DependencyReady), ready, 0, result{Create: []string{"s-b-0"}, Support: true}},
		{"what depends on the end of another is made then", after(v1alpha2.DependencyComplete), one("a", 0, done), 0, result{Create: []string{"s-b-0"}, Support: true}},
		{"in order: the next when the first is ready",
			func(s *v1alpha2.JobSet) { s.Spec.StartupPolicy.StartupPolicyOrder = v1alpha2.InOrder }, nil, 0,
			result{Create: []string{"s-a-0"}, Support: true, Conditions: map[string]string{"StartupPolicyInProgress": "InOrderStartupPolicyInProgress"}}},
		{"one of two Jobs has succeeded", nil, one("a", 0, done), 0, result{Create: []string{"s-b-0"}, Support: true}},
		{"one of two is enough", func(s *v1alpha2.JobSet) { s.Spec.SuccessPolicy.Operator = v1alpha2.OperatorAny }, one("b", 0, done), 0,
			result{Conditions: map[string]string{"Completed": "AllJobsCompleted"}}},
		{"the one that counts has succeeded", func(s *v1alpha2.JobSet) { s.Spec.SuccessPolicy.TargetReplicatedJobs = []string{"b"} }, one("b", 0, done), 0,
			result{Conditions: map[string]string{"Completed": "AllJobsCompleted"}}},
		{"without a policy a failure is the set's", nil, one("a", 0, broken), 0, result{Conditions: map[string]string{"Failed": "FailedJobs"}}},
		{"with one the set is restarted", policy(2), one("a", 0, broken), 0,
			result{Restarts: 1, Counted: 1, Conditions: map[string]string{"RestartingJobSet": "DefaultFailurePolicy"}}},
		{"as often as it may be", func(s *v1alpha2.JobSet) { policy(2)(s); s.Status.Restarts, s.Status.RestartsCountTowardsMax = 2, 2 }, one("a", 2, broken), 0,
			result{Restarts: 2, Counted: 2, Conditions: map[string]string{"Failed": "ReachedMaxRestarts"}}},
		{"a rule that does not count", policy(0, v1alpha2.FailurePolicyRule{Name: "r", Action: v1alpha2.RestartJobSetAndIgnoreMaxRestarts}), one("a", 0, broken), 0,
			result{Restarts: 1, Conditions: map[string]string{"RestartingJobSet": "FailurePolicy_r"}}},
		{"a rule that fails by reason", policy(5, v1alpha2.FailurePolicyRule{Name: "r", Action: v1alpha2.FailJobSet, OnJobFailureReasons: []string{backoff}}), one("a", 0, broken), 0,
			result{Conditions: map[string]string{"Failed": "FailJobSetFailurePolicyAction"}}},
		{"a rule whose message does not match", policy(5, v1alpha2.FailurePolicyRule{Name: "r", Action: v1alpha2.FailJobSet, OnJobFailureMessagePatterns: []string{"^nothing"}}), one("a", 0, broken), 0,
			result{Restarts: 1, Counted: 1, Conditions: map[string]string{"RestartingJobSet": "DefaultFailurePolicy"}}},
		{"a rule about another replicated job", policy(5, v1alpha2.FailurePolicyRule{Name: "r", Action: v1alpha2.FailJobSet, TargetReplicatedJobs: []string{"b"}}), one("a", 0, broken), 0,
			result{Restarts: 1, Counted: 1, Conditions: map[string]string{"RestartingJobSet": "DefaultFailurePolicy"}}},
		{"Jobs of an earlier attempt go, and their names are free when they are gone", func(s *v1alpha2.JobSet) { policy(2)(s); s.Status.Restarts = 1 }, one("a", 0, broken), 0,
			result{Delete: []string{"s-a-0"}, Create: []string{"s-b-0"}, Support: true, Restarts: 1}},
		{"all of them first, with BlockingRecreate",
			func(s *v1alpha2.JobSet) {
				policy(2)(s)
				s.Spec.FailurePolicy.RestartStrategy, s.Status.Restarts = v1alpha2.BlockingRecreate, 1
			}, one("a", 0, broken), 0, result{Delete: []string{"s-a-0"}, Support: true, Restarts: 1}},
		{"suspended: Jobs that run are suspended", suspended, func(s *v1alpha2.JobSet) []*batchv1.Job {
			job := jobOf(s, "a", 0, "", "")
			job.Spec.Suspend = ptr.To(false)
			return []*batchv1.Job{job}
		}, 0, result{Create: []string{"s-b-0"}, Suspend: []string{"s-a-0"}, Support: true, Conditions: map[string]string{"Suspended": "SuspendedJobs"}}},
		{"resumed: suspended Jobs go on", nil, func(s *v1alpha2.JobSet) []*batchv1.Job {
			job := jobOf(s, "a", 0, "", "")
			job.Spec.Suspend = ptr.To(true)
			return []*batchv1.Job{job}
		}, 0, result{Create: []string{"s-b-0"}, Resume: []string{"s-a-0"}, Support: true}},
		{"after the end what runs is deleted", ended, one("b", 0, ""), 4 * time.Second,
			result{Delete: []string{"s-b-0"}, Conditions: map[string]string{"Failed": "FailedJobs"}, After: 6 * time.Second}},
		{"and some time later the set", ended, nil, 11 * time.Second, result{Expired: true, Conditions: map[string]string{"Failed": "FailedJobs"}}},
	}
	for _, c := range cases {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			set := newSet("a", "b")
			if c.change != nil {
				c.change(set)
			}
			var owned []*batchv1.Job
			if c.jobs != nil {
				owned = c.jobs(set)
			}
			if diff := cmp.Diff(c.want, resultOf(Decide(set, owned, epoch.Add(c.late)))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestJobOfASet(t *testing.T) {
	t.Parallel()
	set := newSet("a", "b")
	set.Spec.ReplicatedJobs[1].Replicas = ptr.To(int32(2))
	set.Spec.ReplicatedJobs[1].Template.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", VolumeMounts: []corev1.VolumeMount{{Name: "data"}}}}
	set.Spec.VolumeClaimPolicies = []v1alpha2.VolumeClaimPolicy{{Templates: []v1alpha2.ClaimTemplate{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}}}
	set.Spec.Coordinator = &v1alpha2.Coordinator{ReplicatedJob: "a"}
	set.Status.Restarts = 3
	set.SetDefaults()
	job := newJob(set, &set.Spec.ReplicatedJobs[1], 1)
	marks := map[string]string{
		"jobset.sigs.k8s.io/jobset-name": "s", "jobset.sigs.k8s.io/jobset-uid": "u",
		"jobset.sigs.k8s.io/replicatedjob-name": "b", "jobset.sigs.k8s.io/replicatedjob-replicas": "2", "jobset.sigs.k8s.io/global-replicas": "3",
		"jobset.sigs.k8s.io/job-index": "1", "jobset.sigs.k8s.io/job-global-index": "2", "jobset.sigs.k8s.io/restart-attempt": "3",
		"jobset.sigs.k8s.io/group-name": "default", "jobset.sigs.k8s.io/group-replicas": "3", "jobset.sigs.k8s.io/job-group-index": "2",
		"jobset.sigs.k8s.io/coordinator": "s-a-0-0.s",
	}
	marks["jobset.sigs.k8s.io/job-key"] = job.Labels["jobset.sigs.k8s.io/job-key"] // checked below
	for where, got := range map[string]map[string]string{"labels": job.Labels, "annotations": job.Annotations, "Pod's labels": job.Spec.Template.Labels, "Pod's annotations": job.Spec.Template.Annotations} {
		if diff := cmp.Diff(marks, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", where, diff)
		}
	}
	if len(marks["jobset.sigs.k8s.io/job-key"]) != 40 {
		t.Errorf("the key is %q, want a SHA-1", marks["jobset.sigs.k8s.io/job-key"])
	}
	pod := job.Spec.Template.Spec
	if job.Name != "s-b-1" || pod.Subdomain != "s" || *job.Spec.CompletionMode != batchv1.IndexedCompletion || pod.RestartPolicy != corev1.RestartPolicyOnFailure {
		t.Errorf("the Job is %+v", job)
	}
	if len(pod.Volumes) != 1 || pod.Volumes[0].PersistentVolumeClaim.ClaimName != "data-s" || len(newClaims(set)[0].OwnerReferences) != 1 {
		t.Errorf("the Pod has the volumes %+v", pod.Volumes)
	}
}

// TestRestartsAreCountedOnce plays a set whose Jobs fail at random, whose
// controller may be called with what is old, and whose status writes are lost
// unless they are about the newest version: it ends after as many attempts as
// its policy allows, never more.
func TestRestartsAreCountedOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		set := newSet("a", "b")
		limit := rapid.Int32Range(0, 4).Draw(t, "limit")
		set.Spec.FailurePolicy = &v1alpha2.FailurePolicy{MaxRestarts: limit, RestartStrategy: v1alpha2.Recreate}
		stale, version, staleVersion := set.DeepCopy(), 0, 0
		jobs := map[string]*batchv1.Job{}
		attempts := map[string]bool{}
		for range 400 {
			seen, at := set, version
			if rapid.Bool().Draw(t, "old") {
				seen, at = stale, staleVersion
			}
			var owned []*batchv1.Job
			for _, name := range []string{"s-a-0", "s-b-0"} {
				if jobs[name] != nil {
					owned = append(owned, jobs[name].DeepCopy())
				}
			}
			plan := Decide(seen, owned, epoch)
			for _, job := range plan.Delete {
				if at == version { // a Delete names the UID of what was seen
					delete(jobs, job.Name)
				}
			}
			for _, job := range plan.Create {
				if jobs[job.Name] == nil {
					jobs[job.Name] = job
					attempts[job.Labels[v1alpha2.LabelRestartAttempt]] = true
				}
			}
			stale, staleVersion = set.DeepCopy(), version
			if at == version && !cmp.Equal(plan.Status, set.Status) {
				set.Status = plan.Status
				version++
			}
			if ended(&set.Status) != nil && len(jobs) == 0 {
				break
			}
			for _, name := range []string{"s-a-0", "s-b-0"} {
				if jobs[name] != nil && outcome(jobs[name]) == nil && rapid.IntRange(0, 2).Draw(t, "fails") == 0 {
					jobs[name] = jobOf(set, name[2:3], attemptOf(t, jobs[name]), batchv1.JobFailed, "r")
				}
			}
		}
		if set.Status.Restarts > limit || len(attempts) > int(limit)+1 {
			t.Fatalf("%d restarts and %d attempts, with a limit of %d", set.Status.Restarts, len(attempts), limit)
		}
		if c := ended(&set.Status); c != nil && (c.Reason != v1alpha2.ReasonReachedMaxRestarts || set.Status.Restarts != limit) {
			t.Fatalf("the set ended with %+v after %d of %d restarts", c, set.Status.Restarts, limit)
		}
		if meta.IsStatusConditionTrue(set.Status.Conditions, v1alpha2.ConditionCompleted) {
			t.Fatal("the set is both failed and complete")
		}
	})
}

func attemptOf(t *rapid.T, job *batchv1.Job) int32 {
	n, err := strconv.ParseInt(job.Labels[v1alpha2.LabelRestartAttempt], 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return int32(n)
}
