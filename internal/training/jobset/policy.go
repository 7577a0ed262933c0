// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"diwan.dev/diwan/api/jobset/v1alpha2"
)

// succeeded reports whether the Jobs that did make the set succeed.
func succeeded(set *v1alpha2.JobSet, jobs []*batchv1.Job) bool {
	policy := set.Spec.SuccessPolicy
	counts := func(replicatedJob string) bool {
		return len(policy.TargetReplicatedJobs) == 0 || slices.Contains(policy.TargetReplicatedJobs, replicatedJob)
	}
	have, want := 0, 0
	for _, job := range jobs {
		if counts(job.Labels[v1alpha2.LabelReplicatedJobName]) {
			have++
		}
	}
	for i := range set.Spec.ReplicatedJobs {
		if r := &set.Spec.ReplicatedJobs[i]; counts(r.Name) {
			want += r.Count()
		}
	}
	if policy.Operator == v1alpha2.OperatorAny {
		want = 1
	}
	return have > 0 && have >= want
}

// fail follows the failure policy.
func (p *Plan) fail(set *v1alpha2.JobSet, failed []*batchv1.Job, now time.Time) {
	policy := set.Spec.FailurePolicy
	if policy == nil {
		p.end(now, v1alpha2.ConditionFailed, v1alpha2.ReasonFailedJobs, about(messageFailedJobs, first(failed)))
		return
	}
	action, job, reason := v1alpha2.RestartJobSet, first(failed), v1alpha2.ReasonRestartingByDefault
	if rule, match := matching(policy.Rules, failed); rule != nil {
		action, job, reason = rule.Action, match, "FailurePolicy_"+rule.Name
	}
	switch {
	case action == v1alpha2.FailJobSet:
		p.end(now, v1alpha2.ConditionFailed, v1alpha2.ReasonFailJobSet, about(messageFailJobSet, job))
	case action == v1alpha2.RestartJobSetAndIgnoreMaxRestarts:
		p.restart(now, reason, v1alpha2.ReasonRestartJobSetIgnoringMax, about(messageRestartIgnoring, job))
	case p.Status.RestartsCountTowardsMax >= policy.MaxRestarts:
		p.end(now, v1alpha2.ConditionFailed, v1alpha2.ReasonReachedMaxRestarts, about(messageMaxRestarts, job))
	default:
		p.Status.RestartsCountTowardsMax++
		p.restart(now, reason, v1alpha2.ReasonRestartJobSet, about(messageRestart, job))
	}
}

// restart begins another attempt: the Jobs of this one are of an earlier one
// from now on.
func (p *Plan) restart(now time.Time, condition, event, message string) {
	p.Status.Restarts++
	p.set(now, v1alpha2.ConditionRestarting, true, true, condition, message)
	p.Events = append(p.Events, Event{Warning: true, Reason: event, Message: message})
}

// matching returns the first rule that matches a failed Job, and of the Jobs
// that match it the one that failed first; nil when no rule does.
func matching(rules []v1alpha2.FailurePolicyRule, failed []*batchv1.Job) (*v1alpha2.FailurePolicyRule, *batchv1.Job) {
	for i := range rules {
		var match []*batchv1.Job
		for _, job := range failed {
			if applies(&rules[i], job) {
				match = append(match, job)
			}
		}
		if len(match) > 0 {
			return &rules[i], first(match)
		}
	}
	return nil, nil
}

func applies(rule *v1alpha2.FailurePolicyRule, job *batchv1.Job) bool {
	c := outcome(job)
	matches := func(pattern string) bool {
		ok, err := regexp.MatchString(pattern, c.Message)
		return ok && err == nil // admission has refused patterns that are none
	}
	return (len(rule.OnJobFailureReasons) == 0 || slices.Contains(rule.OnJobFailureReasons, c.Reason)) &&
		(len(rule.OnJobFailureMessagePatterns) == 0 || slices.ContainsFunc(rule.OnJobFailureMessagePatterns, matches)) &&
		(len(rule.TargetReplicatedJobs) == 0 || slices.Contains(rule.TargetReplicatedJobs, job.Labels[v1alpha2.LabelReplicatedJobName]))
}

// first is the Job that ended first; among equals, the first by name.
func first(jobs []*batchv1.Job) *batchv1.Job {
	return slices.MinFunc(jobs, func(a, b *batchv1.Job) int {
		if c := outcome(a).LastTransitionTime.Compare(outcome(b).LastTransitionTime.Time); c != 0 {
			return c
		}
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
}

func about(message string, job *batchv1.Job) string {
	return fmt.Sprintf("%s (first failed job: %s)", message, job.Name)
}
