// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

// failure is a replica that failed and is not yet dealt with.
type failure struct {
	replica Replica
	pod     *corev1.Pod // nil: it is gone
}

// failures returns the replicas that failed and are to be restarted, in the
// order of types and indices.
func (d *decision) failures() []failure {
	var all []failure
	for r, p := range d.pods {
		if hasFailed(p) && d.retryable(r, p) {
			all = append(all, failure{r, p})
		}
	}
	for _, r := range d.missing { // with those whose policy is Never, of a type that a job may lose
		if d.retryable(r, nil) || d.f.Tolerates(d.job, r.Type) {
			all = append(all, failure{r, nil})
		}
	}
	types := d.job.Traits().Types
	slices.SortFunc(all, func(a, b failure) int {
		if a.replica.Type != b.replica.Type {
			return slices.Index(types, a.replica.Type) - slices.Index(types, b.replica.Type)
		}
		return a.replica.Index - b.replica.Index
	})
	return all
}

// hasFailed reports whether a Pod failed, or is being deleted by others: on a
// lost machine it never reports more.
func hasFailed(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp != nil
}

// unknownExit stands for the exit code of a program that did not get to give
// one, because its machine was lost or it was evicted.
const unknownExit = 0xbeef

// exitCode is the exit code of the container that trains.
func (d *decision) exitCode(p *corev1.Pod) int32 {
	if p == nil {
		return unknownExit
	}
	if t := d.main(p).Terminated; t != nil {
		return t.ExitCode
	}
	return unknownExit
}

// retryable reports whether the restart policy of a failed replica asks for
// another try.
func (d *decision) retryable(r Replica, p *corev1.Pod) bool {
	switch d.job.Replicas()[r.Type].RestartPolicy {
	case v1.RestartAlways, v1.RestartOnFailure:
		return true
	case v1.RestartOnExitCode:
		return d.exitCode(p) >= 128
	}
	return false
}

// hopeless says why the job has failed, "" if it has not.
func (d *decision) hopeless() string {
	name, policy := d.job.GetName(), d.job.Policy()
	for _, t := range d.job.Traits().Types {
		failed := 0
		for r, p := range d.pods {
			if r.Type == t && hasFailed(p) && !d.retryable(r, p) {
				failed++
			}
		}
		for _, r := range d.missing {
			if r.Type == t && !d.retryable(r, nil) {
				failed++
			}
		}
		if failed > 0 && !d.f.Tolerates(d.job, t) {
			return fmt.Sprintf("%s %s is failed because %d %s replica(s) failed.", d.kind, name, failed, t)
		}
	}
	if limit := policy.BackoffLimit; limit != nil && d.tries() > *limit {
		return fmt.Sprintf("Job %s has failed because it has reached the specified backoff limit", name)
	}
	if limit := policy.ActiveDeadlineSeconds; limit != nil && d.look(d.status.StartTime.Add(time.Duration(*limit)*time.Second)) {
		return fmt.Sprintf("Job %s has failed because it was active longer than specified deadline", name)
	}
	return ""
}

// tries is the number of failures that were retried, or will be.
func (d *decision) tries() int32 {
	failed := int32(len(d.failures()))
	if d.job.Policy().RestartScope == v1.RestartJob {
		failed = min(failed, 1) // one failure brings the others down
	}
	return d.status.Retries() + failed
}

// restart replaces the replicas that failed, or all of them.
func (d *decision) restart(failed []failure) {
	for _, f := range failed {
		if f.pod == nil {
			d.tell(true, "PodLost", "Pod: %s.%s is gone, and its end was not observed", d.job.GetNamespace(), d.name(f.replica))
			continue
		}
		d.tell(false, "ExitedWithCode", "Pod: %s.%s exited with code %d", f.pod.Namespace, f.pod.Name, d.exitCode(f.pod))
	}
	if d.job.Policy().RestartScope == v1.RestartJob {
		d.status.Restarts++
		d.leave(slices.Collect(maps.Values(d.pods))...)
		clear(d.pods)
		clear(d.begun)
	} else {
		for _, f := range failed {
			d.status.Restarts++
			delete(d.begun, f.replica)
			if f.pod != nil {
				d.leave(f.pod)
				delete(d.pods, f.replica)
			}
		}
	}
	message := fmt.Sprintf("job %s is restarting because %s replica(s) failed.", d.job.GetName(), failed[0].replica.Type)
	d.tell(true, d.kind+"Restarting", "%s", message)
	d.status.Set(d.now, v1.JobRestarting, corev1.ConditionTrue, d.kind+"Restarting", message)
}

// report reports Pods that are stuck.
func (d *decision) report() {
	if g, ok := d.f.(gang); ok {
		if why := g.impossible(d.job); why != "" {
			d.tell(true, "Unschedulable", "%s", why)
		}
	}
	d.reportAlone()
	for _, t := range d.job.Traits().Types {
		for _, r := range replicasOf(d.job, t) {
			if p := d.pods[r]; p != nil && p.Status.Phase != corev1.PodSucceeded {
				d.reportPod(p)
			}
		}
	}
}

func (d *decision) reportPod(p *corev1.Pod) {
	statuses := p.Status.ContainerStatuses
	if len(statuses) == 0 {
		statuses = p.Status.InitContainerStatuses
	}
	for _, s := range statuses {
		if t := s.State.Terminated; t != nil && t.ExitCode != 0 {
			d.tell(true, t.Reason, "Error pod %s container %s exitCode: %d terminated message: %s", p.Name, s.Name, t.ExitCode, t.Message)
		}
		if w := s.State.Waiting; w != nil && w.Message != "" {
			d.tell(true, w.Reason, "Error pod %s container %s waiting message: %s", p.Name, s.Name, w.Message)
		}
	}
	if len(statuses) > 0 {
		return
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason != "" {
			d.tell(true, c.Reason, "Error pod %s condition message: %s", p.Name, c.Message)
		}
	}
}
