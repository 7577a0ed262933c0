// SPDX-License-Identifier: Apache-2.0

package node

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// view is what the node knows of one container.
type view struct {
	// starting: a run is being started, or one of an earlier node is being
	// taken over. Nothing else is done to the container meanwhile.
	starting bool
	// running is when the present run started; zero when there is none.
	running time.Time
	// started: the startup probe passed and the postStart hook is over.
	started bool
	// ready: the readiness probe passes.
	ready bool
	// unhealthy: a probe or a hook wants the present run to end.
	unhealthy *corev1.ContainerStateTerminated
	// grace is the grace that goes with unhealthy, in seconds; nil: the Pod's.
	grace *int64
	// ended is the end of the last run; nil while one runs or none ever ended.
	ended *corev1.ContainerStateTerminated
	// previous is the end of the run before.
	previous *corev1.ContainerStateTerminated
	// restarts counts the runs after the first, without interrupted ones.
	restarts int32
	// backoff is the last run's step in the series of delays between restarts.
	backoff int
	// waiting is why the container cannot start now; it is tried at retry.
	waiting *corev1.ContainerStateWaiting
	retry   time.Time
	// id and imageID are those of the last run.
	id, imageID string
}

// live reports whether a run exists or is being started.
func (v *view) live() bool { return v.starting || !v.running.IsZero() }

// observed is what the node knows of a Pod, apart from the Pod itself.
type observed struct {
	now time.Time
	// since is when this node took the Pod; it becomes status.startTime.
	since time.Time
	// prepared: network and volumes are there.
	prepared bool
	// hostIP and podIP are empty until they are known.
	hostIP, podIP string
	// failure ends the Pod: it was evicted or rejected. Once set it stays.
	failure *failure
	// containers has a view of each container of the Pod, by name.
	containers map[string]*view
}

// failure is why a Pod must end as Failed.
type failure struct {
	reason, message string
	// disruption says that the Pod itself is not at fault (condition
	// DisruptionTarget).
	disruption bool
}

// stop asks for the end of a container's run.
type stop struct {
	name  string
	grace time.Duration
	why   string
}

// plan is what should be done for a Pod, and the status to report.
type plan struct {
	// prepare asks for network and volumes.
	prepare bool
	// start names the containers to start now.
	start []string
	// stop names the runs to end. It repeats while they live: a shorter grace
	// counts, a longer one does not.
	stop []stop
	// failure is why the Pod ends as Failed. Once set the worker keeps it.
	failure *failure
	// wake is when to decide again at the latest; zero: when something changes.
	wake time.Time
	// over: the Pod's phase is final and nothing of it runs.
	over bool
	// status is the status to report.
	status corev1.PodStatus
}

// wakeAt moves wake forward to t.
func (p *plan) wakeAt(t time.Time) {
	if p.wake.IsZero() || t.Before(p.wake) {
		p.wake = t
	}
}
