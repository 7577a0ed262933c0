// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"diwan.dev/diwan/api/jobset/v1alpha2"
)

// Decide returns the plan for a set, which has its defaults, with the Jobs
// that it owns.
func Decide(set *v1alpha2.JobSet, owned []*batchv1.Job, now time.Time) Plan {
	p := Plan{Status: *set.Status.DeepCopy()}
	jobs := sortJobs(set, owned)
	p.Status.ReplicatedJobsStatus = count(set, jobs)
	if c := ended(&p.Status); c != nil {
		p.afterEnd(set, jobs, c, now)
		return p
	}
	p.Delete = jobs.previous
	suspended := set.Spec.IsSuspended()
	if !suspended && allReady(&p.Status, set) {
		p.set(now, v1alpha2.ConditionRestarting, false, false, v1alpha2.ReasonRestartingJobsReady, messageJobsReady)
	}
	if len(jobs.failed) > 0 {
		p.fail(set, jobs.failed, now)
		return p
	}
	if succeeded(set, jobs.succeeded) {
		p.end(now, v1alpha2.ConditionCompleted, v1alpha2.ReasonAllJobsCompleted, messageCompleted)
		return p
	}
	p.Support = true
	p.start(set, jobs, now)
	if suspended {
		for _, job := range jobs.active {
			if !ptr.Deref(job.Spec.Suspend, false) {
				p.Suspend = append(p.Suspend, job)
			}
		}
		p.set(now, v1alpha2.ConditionSuspended, true, false, v1alpha2.ReasonSuspended, messageSuspended)
		p.set(now, v1alpha2.ConditionRestarting, false, false, v1alpha2.ReasonRestartingSuspended, messageSuspended)
	}
	return p
}

// afterEnd cleans up after a set that ended.
func (p *Plan) afterEnd(set *v1alpha2.JobSet, jobs sorted, end *metav1.Condition, now time.Time) {
	p.Delete = append(jobs.previous, jobs.active...)
	if set.Spec.TTLSecondsAfterFinished == nil {
		return
	}
	left := end.LastTransitionTime.Add(time.Duration(*set.Spec.TTLSecondsAfterFinished) * time.Second).Sub(now)
	p.Expired, p.After = left <= 0, max(left, 0)
}

// start makes and resumes the Jobs whose turn has come.
func (p *Plan) start(set *v1alpha2.JobSet, jobs sorted, now time.Time) {
	suspended := set.Spec.IsSuspended()
	inOrder := !suspended && set.Spec.StartupPolicy.StartupPolicyOrder == v1alpha2.InOrder
	blocked := len(jobs.previous) > 0 && set.Spec.FailurePolicy != nil && set.Spec.FailurePolicy.RestartStrategy == v1alpha2.BlockingRecreate
	for i := range set.Spec.ReplicatedJobs {
		r := &set.Spec.ReplicatedJobs[i]
		if !dependenciesMet(set, r, p.Status.ReplicatedJobsStatus) {
			continue
		}
		if !blocked {
			p.create(set, r, jobs)
		}
		if suspended {
			continue
		}
		for _, job := range jobs.active {
			if job.Labels[v1alpha2.LabelReplicatedJobName] == r.Name && ptr.Deref(job.Spec.Suspend, false) {
				p.Resume = append(p.Resume, resumed(job, r))
			}
		}
		if inOrder && !started(&p.Status.ReplicatedJobsStatus[i], r) {
			p.set(now, v1alpha2.ConditionStartupInProgress, true, false, v1alpha2.ReasonStartupInProgress, messageInOrder)
			return
		}
	}
	if suspended {
		return
	}
	if inOrder {
		p.set(now, v1alpha2.ConditionStartupInProgress, false, false, v1alpha2.ReasonStartupCompleted, messageInOrderDone)
		p.set(now, v1alpha2.ConditionStartupCompleted, true, false, v1alpha2.ReasonStartupCompleted, messageInOrderDone)
	}
	p.set(now, v1alpha2.ConditionSuspended, false, false, v1alpha2.ReasonResumed, messageResumed)
}

// create makes the Jobs of a replicated job that are not there.
func (p *Plan) create(set *v1alpha2.JobSet, r *v1alpha2.ReplicatedJob, jobs sorted) {
	for i := range r.Count() {
		if !jobs.names[v1alpha2.JobName(set.Name, r.Name, i)] {
			p.Create = append(p.Create, newJob(set, r, i))
		}
	}
}

// sorted are the Jobs of a set by outcome. Those of an earlier attempt count
// only for their names.
type sorted struct {
	active, succeeded, failed, previous []*batchv1.Job
	names                               map[string]bool
}

func sortJobs(set *v1alpha2.JobSet, owned []*batchv1.Job) sorted {
	s := sorted{names: map[string]bool{}}
	for _, job := range owned {
		s.names[job.Name] = true
		attempt, err := strconv.Atoi(job.Labels[v1alpha2.LabelRestartAttempt])
		c := outcome(job)
		switch {
		case err != nil || attempt < int(set.Status.Restarts):
			s.previous = append(s.previous, job)
		case c == nil:
			s.active = append(s.active, job)
		case c.Type == batchv1.JobFailed:
			s.failed = append(s.failed, job)
		default:
			s.succeeded = append(s.succeeded, job)
		}
	}
	return s
}

// count counts the Jobs of each replicated job, in the order of the spec.
func count(set *v1alpha2.JobSet, jobs sorted) []v1alpha2.ReplicatedJobStatus {
	out := make([]v1alpha2.ReplicatedJobStatus, len(set.Spec.ReplicatedJobs))
	index := map[string]int{}
	for i, r := range set.Spec.ReplicatedJobs {
		out[i].Name, index[r.Name] = r.Name, i
	}
	each := func(jobs []*batchv1.Job, add func(*v1alpha2.ReplicatedJobStatus, *batchv1.Job)) {
		for _, job := range jobs {
			if i, ok := index[job.Labels[v1alpha2.LabelReplicatedJobName]]; ok {
				add(&out[i], job)
			}
		}
	}
	each(jobs.succeeded, func(s *v1alpha2.ReplicatedJobStatus, _ *batchv1.Job) { s.Succeeded++ })
	each(jobs.failed, func(s *v1alpha2.ReplicatedJobStatus, _ *batchv1.Job) { s.Failed++ })
	each(jobs.active, func(s *v1alpha2.ReplicatedJobStatus, job *batchv1.Job) {
		pods := ptr.Deref(job.Spec.Parallelism, 1)
		if job.Spec.Completions != nil {
			pods = min(pods, *job.Spec.Completions)
		}
		if job.Status.Succeeded+ptr.Deref(job.Status.Ready, 0) >= pods {
			s.Ready++
		}
		if job.Status.Active > 0 {
			s.Active++
		}
		if ptr.Deref(job.Spec.Suspend, false) {
			s.Suspended++
		}
	})
	return out
}

// started reports whether all Jobs have had the Pods that they need.
func started(s *v1alpha2.ReplicatedJobStatus, r *v1alpha2.ReplicatedJob) bool {
	return int(s.Failed+s.Ready+s.Succeeded) == r.Count()
}

// allReady reports whether all Jobs of the set are ready or succeeded.
func allReady(status *v1alpha2.JobSetStatus, set *v1alpha2.JobSet) bool {
	want, have := 0, 0
	for i, r := range set.Spec.ReplicatedJobs {
		want += r.Count()
		have += int(status.ReplicatedJobsStatus[i].Ready + status.ReplicatedJobsStatus[i].Succeeded)
	}
	return want == have
}

// dependenciesMet reports whether all that r depends on has come.
func dependenciesMet(set *v1alpha2.JobSet, r *v1alpha2.ReplicatedJob, status []v1alpha2.ReplicatedJobStatus) bool {
	for _, d := range r.DependsOn {
		for i := range set.Spec.ReplicatedJobs {
			other := &set.Spec.ReplicatedJobs[i]
			switch {
			case other.Name != d.Name:
			case d.Status == v1alpha2.DependencyComplete && int(status[i].Succeeded) != other.Count(),
				d.Status == v1alpha2.DependencyReady && !started(&status[i], other):
				return false
			}
		}
	}
	return true
}
