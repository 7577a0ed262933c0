// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// report fills in the status.
func (d *decision) report() {
	s := &d.plan.status
	d.pod.Status.DeepCopyInto(s)
	if isFinal(d.pod.Status.Phase) {
		return // what was reported as final stays
	}
	s.ObservedGeneration = d.pod.Generation
	if s.StartTime == nil {
		s.StartTime = stamp(d.since)
	}
	d.reportAddresses(s)
	s.InitContainerStatuses = d.statuses(pointers(d.pod.Spec.InitContainers), d.pod.Status.InitContainerStatuses)
	s.ContainerStatuses = d.statuses(pointers(d.pod.Spec.Containers), d.pod.Status.ContainerStatuses)
	s.EphemeralContainerStatuses = d.statuses(ephemeralOf(d.pod), d.pod.Status.EphemeralContainerStatuses)
	for i := range s.EphemeralContainerStatuses {
		s.EphemeralContainerStatuses[i].Started, s.EphemeralContainerStatuses[i].Ready = nil, false // as kubelet leaves them
	}
	s.Phase = d.phase()
	if d.failed != nil && s.Phase == corev1.PodFailed && d.failed.reason != "" {
		s.Reason, s.Message = d.failed.reason, d.failed.message
	}
	d.reportConditions(s)
}

func (d *decision) reportAddresses(s *corev1.PodStatus) {
	if d.hostIP != "" {
		s.HostIP, s.HostIPs = d.hostIP, []corev1.HostIP{{IP: d.hostIP}}
	}
	if d.podIP != "" {
		s.PodIP, s.PodIPs = d.podIP, []corev1.PodIP{{IP: d.podIP}}
	}
}

// phase is the Pod's phase. It becomes final only when nothing runs any more.
func (d *decision) phase() corev1.PodPhase {
	if d.plan.over {
		switch {
		case d.failed != nil:
			return corev1.PodFailed
		case d.pod.DeletionTimestamp == nil || d.begun():
			return d.outcome()
		}
		return corev1.PodFailed // deleted before it began
	}
	if d.begun() {
		for i := range d.pod.Spec.Containers {
			v := d.view(&d.pod.Spec.Containers[i])
			if v.running.IsZero() && v.ended == nil && v.restarts == 0 {
				return corev1.PodPending // one never ran yet
			}
		}
		return corev1.PodRunning
	}
	return corev1.PodPending
}

// outcome is the final phase of a Pod whose containers have ended.
func (d *decision) outcome() corev1.PodPhase {
	for i := range d.pod.Spec.Containers {
		v := d.view(&d.pod.Spec.Containers[i])
		if v.ended == nil || v.ended.ExitCode != 0 {
			return corev1.PodFailed
		}
	}
	return corev1.PodSucceeded
}

// statuses reports containers in the order of the spec.
func (d *decision) statuses(specs []*corev1.Container, old []corev1.ContainerStatus) []corev1.ContainerStatus {
	var all []corev1.ContainerStatus
	for _, c := range specs {
		v := d.view(c)
		s := corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: v.imageID, ContainerID: v.id, RestartCount: v.restarts,
			State: d.state(c, v),
		}
		for _, o := range old {
			if o.Name == c.Name { // what others wrote, and we do not know
				s.AllocatedResources, s.Resources, s.VolumeMounts, s.User = o.AllocatedResources, o.Resources, o.VolumeMounts, o.User
			}
		}
		if s.State.Terminated == nil && v.ended != nil {
			s.LastTerminationState.Terminated = v.ended
		} else if v.previous != nil {
			s.LastTerminationState.Terminated = v.previous
		}
		started := !v.running.IsZero() && v.started
		s.Started = &started
		s.Ready = started && v.ready
		if isInit(d.pod, c) && !isSidecar(c) {
			s.Ready = v.ended != nil && v.ended.ExitCode == 0
		}
		all = append(all, s)
	}
	return all
}

func pointers(containers []corev1.Container) []*corev1.Container {
	all := make([]*corev1.Container, len(containers))
	for i := range containers {
		all[i] = &containers[i]
	}
	return all
}

// state is a container's present state.
func (d *decision) state(c *corev1.Container, v *view) corev1.ContainerState {
	switch {
	case !v.running.IsZero():
		return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: *stamp(v.running)}}
	case v.ended != nil && (d.ending || d.settled || d.pod.DeletionTimestamp != nil || !d.comesBack(c, v)):
		return corev1.ContainerState{Terminated: v.ended}
	case d.plan.over && d.initialized(): // it never ran, and never will; before that a kubelet leaves it waiting
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: 137, Reason: "ContainerStatusUnknown",
			Message: "The container could not be located when the pod was terminated",
		}}
	case v.waiting != nil:
		return corev1.ContainerState{Waiting: v.waiting}
	case v.ended != nil && delayAfter(v) > 0:
		return waiting("CrashLoopBackOff", backoffMessage(delayAfter(v), c.Name, d.pod))
	case len(d.pod.Spec.InitContainers) > 0: // init containers themselves, too, as kubelets say it
		return waiting("PodInitializing", "")
	}
	return waiting("ContainerCreating", "")
}

// comesBack reports whether an ended container runs again.
func (d *decision) comesBack(c *corev1.Container, v *view) bool {
	if isInit(d.pod, c) && !isSidecar(c) && v.ended.ExitCode == 0 {
		return false
	}
	return restarts(d.pod, c, v.ended.ExitCode)
}

func waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

// reportConditions sets the conditions that are the node's; others stay.
func (d *decision) reportConditions(s *corev1.PodStatus) {
	set := func(kind corev1.PodConditionType, ok bool, reason, message string) {
		status := corev1.ConditionFalse
		if ok {
			status, reason, message = corev1.ConditionTrue, "", ""
		}
		d.setCondition(s, corev1.PodCondition{Type: kind, Status: status, Reason: reason, Message: message})
	}
	if d.failed != nil && d.failed.disruption {
		d.setCondition(s, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
			Reason: corev1.PodReasonTerminationByKubelet, Message: d.failed.message,
		})
	}
	set(corev1.PodReadyToStartContainers, d.prepared && !d.plan.over, "", "")
	set(corev1.PodInitialized, d.initialized(), "ContainersNotInitialized", "containers with incomplete status: "+list(d.uninitialized()))
	switch s.Phase {
	case corev1.PodSucceeded:
		set(corev1.PodInitialized, true, "", "")
		d.setCondition(s, corev1.PodCondition{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, Reason: "PodCompleted"})
		set(corev1.ContainersReady, false, "PodCompleted", "")
		set(corev1.PodReady, false, "PodCompleted", "")
		return
	case corev1.PodFailed:
		set(corev1.ContainersReady, false, "PodFailed", "")
		set(corev1.PodReady, false, "PodFailed", "")
		return
	}
	var unready []string
	for _, c := range append(d.sidecars(s), s.ContainerStatuses...) {
		if !c.Ready {
			unready = append(unready, c.Name)
		}
	}
	ready := len(unready) == 0
	message := "containers with unready status: " + list(unready)
	set(corev1.ContainersReady, ready, "ContainersNotReady", message)
	if ready {
		if gate := d.closedGate(); gate != "" {
			set(corev1.PodReady, false, "ReadinessGatesNotReady", gate)
			return
		}
	}
	set(corev1.PodReady, ready, "ContainersNotReady", message)
}

// initialized reports whether the main containers may begin, or have.
func (d *decision) initialized() bool { return d.begun() || len(d.uninitialized()) == 0 }

// uninitialized are the names of the init containers for which the next one waits.
func (d *decision) uninitialized() []string {
	var names []string
	for i := range d.pod.Spec.InitContainers {
		if c := &d.pod.Spec.InitContainers[i]; !initDone(c, d.view(c)) {
			names = append(names, c.Name)
		}
	}
	return names
}

// sidecars are the statuses of the Pod's sidecars.
func (d *decision) sidecars(s *corev1.PodStatus) []corev1.ContainerStatus {
	var all []corev1.ContainerStatus
	for i := range d.pod.Spec.InitContainers {
		if isSidecar(&d.pod.Spec.InitContainers[i]) && i < len(s.InitContainerStatuses) {
			all = append(all, s.InitContainerStatuses[i])
		}
	}
	return all
}

// list is how a kubelet's messages list names.
func list(names []string) string { return "[" + strings.Join(names, " ") + "]" }

// closedGate returns a readiness gate that is not open.
func (d *decision) closedGate() string {
	for _, gate := range d.pod.Spec.ReadinessGates {
		open := false
		for _, c := range d.pod.Status.Conditions {
			open = open || c.Type == gate.ConditionType && c.Status == corev1.ConditionTrue
		}
		if !open {
			return fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist or is not true.", gate.ConditionType)
		}
	}
	return ""
}

// setCondition replaces a condition; its time changes with its status only.
func (d *decision) setCondition(s *corev1.PodStatus, c corev1.PodCondition) {
	c.ObservedGeneration = d.pod.Generation
	c.LastTransitionTime = *stamp(d.now)
	for i := range s.Conditions {
		old := &s.Conditions[i]
		if old.Type != c.Type {
			continue
		}
		if old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
		c.LastProbeTime = old.LastProbeTime
		*old = c
		return
	}
	s.Conditions = append(s.Conditions, c)
}

// stamp is a time as the API keeps it: whole seconds.
func stamp(t time.Time) *metav1.Time {
	m := metav1.NewTime(t).Rfc3339Copy()
	return &m
}
