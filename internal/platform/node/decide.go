// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// decision is one call of decide at work.
type decision struct {
	pod *corev1.Pod
	observed
	plan
	failed  *failure // why the Pod ends as Failed
	ending  bool     // no container may start any more
	settled bool     // all containers have completed
}

// decide returns what to do for a Pod and what status to report. It depends only
// on its arguments and does not modify them.
//
// The order of things is kubelet's. Init containers run one after another; one
// that restarts always is a sidecar, and counts as done once it is started. Then
// the main containers run together. When they are done the sidecars are ended,
// last one first. A Pod that is deleted, has passed its deadline or failed ends
// in the same order: main containers first, then sidecars.
func decide(pod *corev1.Pod, o observed) plan {
	d := &decision{pod: pod, observed: o}
	d.failed = d.mustFail()
	d.plan.failure = d.failed
	d.ending = d.failed != nil || pod.DeletionTimestamp != nil || isFinal(pod.Status.Phase)
	if !d.ending {
		d.advance()
	}
	if d.ending || d.settled {
		d.windDown()
	}
	d.report()
	return d.plan
}

// mustFail says why the Pod must end as Failed, apart from what its containers do.
func (d *decision) mustFail() *failure {
	if d.observed.failure != nil {
		return d.observed.failure
	}
	if d.pod.Spec.ActiveDeadlineSeconds == nil || isFinal(d.pod.Status.Phase) {
		return nil
	}
	deadline := d.start().Add(time.Duration(*d.pod.Spec.ActiveDeadlineSeconds) * time.Second)
	if d.now.Before(deadline) {
		d.wakeAt(deadline)
		return nil
	}
	if d.allDone() {
		return nil // it was done before
	}
	return &failure{reason: "DeadlineExceeded", message: "Pod was active on the node longer than the specified deadline"}
}

// start is when the Pod started on this node.
func (d *decision) start() time.Time {
	if t := d.pod.Status.StartTime; t != nil {
		return t.Time
	}
	return d.since
}

// advance starts containers that are due. Ephemeral containers wait for no
// others.
func (d *decision) advance() {
	begun := d.begun()
	for _, c := range ephemeralOf(d.pod) {
		if v := d.view(c); v.ended == nil {
			d.startIfDue(c, v)
		}
	}
	for i := range d.pod.Spec.InitContainers {
		c := &d.pod.Spec.InitContainers[i]
		if !d.advanceInit(c, d.view(c), begun) {
			return
		}
	}
	d.settled = true
	for i := range d.pod.Spec.Containers {
		c := &d.pod.Spec.Containers[i]
		v := d.view(c)
		if !d.done(c, v) {
			d.settled = false
			d.startIfDue(c, v)
		}
	}
}

// advanceInit handles one init container. It reports whether the next one may
// proceed.
func (d *decision) advanceInit(c *corev1.Container, v *view, begun bool) bool {
	if isSidecar(c) {
		if begun && d.allDone() {
			return true // it is wound down
		}
		d.startIfDue(c, v)
		return begun || initDone(c, v)
	}
	switch {
	case begun || initDone(c, v):
		return true
	case v.ended != nil && !restarts(d.pod, c, v.ended.ExitCode):
		d.ending = true
		d.failed = &failure{} // the container's own state says why
	default:
		d.startIfDue(c, v)
	}
	return false
}

// initDone reports whether an init container lets the next one begin: a sidecar when it
// has started, another when it has succeeded.
func initDone(c *corev1.Container, v *view) bool {
	if isSidecar(c) {
		return !v.running.IsZero() && v.started
	}
	return v.ended != nil && v.ended.ExitCode == 0
}

// startIfDue starts a container that does not live, unless it has to wait.
func (d *decision) startIfDue(c *corev1.Container, v *view) {
	if v.unhealthy != nil && !v.running.IsZero() {
		d.end(c.Name, v, d.graceOf(v), v.unhealthy.Message)
		return
	}
	if v.live() {
		return
	}
	if due := dueTime(v); due.After(d.now) {
		d.wakeAt(due)
		return
	}
	if !d.prepared {
		d.plan.prepare = true
		return
	}
	d.plan.start = append(d.plan.start, c.Name)
}

// windDown ends what runs: all but the sidecars, and when they are gone the
// sidecars, the last one first.
func (d *decision) windDown() {
	living := false
	for _, c := range d.all() {
		v := d.view(c)
		if !v.live() || isSidecarOf(d.pod, c) {
			continue
		}
		living = true
		d.end(c.Name, v, d.graceOf(v), d.why())
	}
	if living {
		return
	}
	for _, c := range slices.Backward(d.pod.Spec.InitContainers) {
		if v := d.view(&c); isSidecar(&c) && v.live() {
			d.end(c.Name, v, d.graceOf(v), d.why())
			return
		}
	}
	d.plan.over = true
}

// end requests the termination of a run. For a container that is being
// started, it is requested again once it runs.
func (d *decision) end(name string, v *view, grace time.Duration, why string) {
	if !v.running.IsZero() {
		d.plan.stop = append(d.plan.stop, stop{name: name, grace: grace, why: why})
	}
}

func (d *decision) why() string {
	switch {
	case d.failed != nil && d.failed.message != "":
		return d.failed.message
	case d.pod.DeletionTimestamp != nil:
		return "the Pod is deleted"
	}
	return "the Pod's main containers are done"
}

// graceOf is how long a run may take to end.
func (d *decision) graceOf(v *view) time.Duration {
	if d.pod.DeletionTimestamp != nil {
		return max(0, d.pod.DeletionTimestamp.Sub(d.now))
	}
	seconds := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if s := d.pod.Spec.TerminationGracePeriodSeconds; s != nil {
		seconds = *s
	}
	if v.unhealthy != nil && v.grace != nil {
		seconds = *v.grace
	}
	return time.Duration(seconds) * time.Second
}

// view returns what is known of a container; an unknown one never ran.
func (d *decision) view(c *corev1.Container) *view {
	if v := d.observed.containers[c.Name]; v != nil {
		return v
	}
	return &view{}
}

// all are the Pod's containers, in the order of containersOf.
func (d *decision) all() []*corev1.Container { return containersOf(d.pod) }

// begun reports whether a main container ever started.
func (d *decision) begun() bool {
	for i := range d.pod.Spec.Containers {
		v := d.view(&d.pod.Spec.Containers[i])
		if v.live() || v.ended != nil || v.previous != nil || v.restarts > 0 {
			return true
		}
	}
	return false
}

// allDone reports whether every main container has completed.
func (d *decision) allDone() bool {
	for i := range d.pod.Spec.Containers {
		if c := &d.pod.Spec.Containers[i]; !d.done(c, d.view(c)) {
			return false
		}
	}
	return true
}

// done reports whether a container has ended for good.
func (d *decision) done(c *corev1.Container, v *view) bool {
	return !v.live() && v.ended != nil && !restarts(d.pod, c, v.ended.ExitCode)
}

// containersOf are the containers of a Pod, init containers first and ephemeral
// ones last.
func containersOf(pod *corev1.Pod) []*corev1.Container {
	all := make([]*corev1.Container, 0, len(pod.Spec.InitContainers)+len(pod.Spec.Containers)+len(pod.Spec.EphemeralContainers))
	for i := range pod.Spec.InitContainers {
		all = append(all, &pod.Spec.InitContainers[i])
	}
	for i := range pod.Spec.Containers {
		all = append(all, &pod.Spec.Containers[i])
	}
	return append(all, ephemeralOf(pod)...)
}

// ephemeralOf are the ephemeral containers of a Pod: they start as soon as they can,
// run once, and do not count for the Pod's phase.
func ephemeralOf(pod *corev1.Pod) []*corev1.Container {
	var all []*corev1.Container
	for i := range pod.Spec.EphemeralContainers {
		all = append(all, (*corev1.Container)(&pod.Spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
	return all
}

// isSidecar reports whether an init container is a sidecar.
func isSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// isSidecarOf reports whether a container of the Pod is one of its sidecars.
func isSidecarOf(pod *corev1.Pod, c *corev1.Container) bool {
	return isSidecar(c) && slices.ContainsFunc(pod.Spec.InitContainers, func(i corev1.Container) bool { return i.Name == c.Name })
}

func isFinal(p corev1.PodPhase) bool { return p == corev1.PodSucceeded || p == corev1.PodFailed }

// backoffMessage is kubelet's.
func backoffMessage(delay time.Duration, name string, pod *corev1.Pod) string {
	return fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)", delay, name, pod.Name, pod.Namespace, pod.UID)
}
