// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

// world is a job with its Pods, and an operator that may die at any moment.
type world struct {
	*rapid.T
	f      Framework
	job    v1.Job
	pods   map[string]*corev1.Pod // by name
	now    time.Time
	made   int
	failed map[types.UID]bool // Pods that failed, or were lost, and had to be replaced
	unseen int                // Pods that were lost since the operator last looked
}

func (w *world) list() []*corev1.Pod {
	var all []*corev1.Pod
	for _, p := range w.pods {
		all = append(all, p)
	}
	return all
}

// reconcile does the first steps of what is decided, as many as the operator
// lives to do.
func (w *world) reconcile(steps int) {
	p := decide(w.f, w.job, w.list(), nil, w.now)
	next := func() bool { steps--; return steps >= 0 }
	if p.status != nil {
		if !next() {
			return
		}
		if w.job.State().IsFinished() && conditions(p.status) != conditions(w.job.State()) {
			w.Fatalf("an ended job goes from %s to %s", conditions(w.job.State()), conditions(p.status))
		}
		*w.job.State() = *p.status
	}
	if !w.job.State().IsFinished() {
		w.unseen = 0
	}
	for _, pod := range p.delete {
		if !next() {
			return
		}
		if pod.Status.Phase == corev1.PodPending || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
			delete(w.pods, pod.Name)
		} else {
			w.pods[pod.Name].DeletionTimestamp = &metav1.Time{Time: w.now}
		}
	}
	for _, r := range p.create {
		if !next() {
			return
		}
		pod := newPod(w.f, w.job, r)
		if w.pods[pod.Name] != nil {
			w.Fatalf("%s is made while it is there", pod.Name)
		}
		if w.job.Policy().RestartScope == v1.RestartJob && len(w.job.State().LeavingPods) > 0 {
			w.Fatalf("%s is made while %d Pods of the earlier run are there", pod.Name, len(w.job.State().LeavingPods))
		}
		w.made++
		pod.UID, pod.Status.Phase = types.UID(fmt.Sprintf("uid-%04d", w.made)), corev1.PodPending
		w.pods[pod.Name] = pod
	}
}

// happen lets something happen to a Pod.
func (w *world) happen(name string, what int) {
	p := w.pods[name]
	switch {
	case p == nil:
	case p.DeletionTimestamp != nil:
		delete(w.pods, name)
	case p.Status.Phase == corev1.PodPending:
		p.Status.Phase = corev1.PodRunning
	case p.Status.Phase != corev1.PodRunning:
	case what == 0:
		p.Status.Phase = corev1.PodSucceeded
	case what == 1:
		p.Status.Phase = corev1.PodFailed
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "pytorch", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137}}}}
		w.failed[p.UID] = true
	case what == 2:
		delete(w.pods, name)
		if w.known(p) {
			w.failed[p.UID] = true
			w.unseen++
		}
	}
}

// known reports whether the status shows that a Pod had begun.
func (w *world) known(p *corev1.Pod) bool {
	s := w.job.State()
	d := &decision{job: w.job}
	r, _ := d.replicaOf(&p.ObjectMeta)
	counts := s.ReplicaStatuses[r.Type]
	return counts != nil && r.Index < int(counts.Begun) && !slices.Contains(s.AwaitedReplicas, p.Name) && !slices.Contains(s.LeavingPods, p.UID)
}

// TestNothingIsCountedTwice runs jobs through failures under an operator that
// dies at any step: every failure that is retried is counted once, and every job
// comes to the end that its policy says.
func TestNothingIsCountedTwice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		scope := rapid.SampledFrom([]string{"Replica", "Job"}).Draw(rt, "scope")
		limit := rapid.IntRange(0, 6).Draw(rt, "limit")
		f, job := read(t, strings.NewReplacer("POLICY", "ExitCode", "RUN", fmt.Sprintf("{restartScope: %s, backoffLimit: %d}", scope, limit)).Replace(pytorchJob))
		job.SetUID("job")
		w := &world{T: rt, f: f, job: job, pods: map[string]*corev1.Pod{}, now: noon, failed: map[types.UID]bool{}}
		names := []string{"j-master-0", "j-worker-0", "j-worker-1"}
		for range rapid.IntRange(10, 60).Draw(rt, "steps") {
			w.now = w.now.Add(time.Second)
			if job.State().IsFinished() {
				break
			}
			if rapid.Bool().Draw(rt, "operator") {
				w.reconcile(rapid.IntRange(0, 8).Draw(rt, "lives for"))
			} else {
				w.happen(rapid.SampledFrom(names).Draw(rt, "pod"), rapid.IntRange(0, 3).Draw(rt, "what"))
			}
		}
		for range 30 { // the operator lives, and what runs succeeds
			if job.State().IsFinished() {
				break
			}
			w.now = w.now.Add(time.Second)
			w.reconcile(100)
			for _, name := range names {
				w.happen(name, 0)
			}
		}
		s := job.State()
		if !s.IsFinished() {
			rt.Fatalf("the job does not end: %s, %d Pods", conditions(s), len(w.pods))
		}
		if int(s.Restarts) > limit {
			rt.Errorf("%d retries, with a limit of %d", s.Restarts, limit)
		}
		if s.Is(v1.JobFailed) && len(w.failed) <= limit {
			rt.Errorf("the job failed after %d failures, with a limit of %d", len(w.failed), limit)
		}
		// A master that succeeds ends the job before its workers' failures are
		// looked at, and a gang's failures at once are one.
		standing := 0
		for _, p := range w.pods {
			if w.failed[p.UID] && !slices.Contains(s.LeavingPods, p.UID) {
				standing++
			}
		}
		if retried := len(w.failed) - standing - w.unseen; s.Is(v1.JobSucceeded) && scope == "Replica" && int(s.Restarts) != retried {
			rt.Errorf("%d failures were retried, %d were counted", retried, s.Restarts)
		}
	})
}
