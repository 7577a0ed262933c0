// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"fmt"
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
	ledger ledger
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
	p := decide(w.f, w.job, have{pods: w.list()}, w.now)
	looked := w.ledger.look(w)
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
	looked()
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
		w.container(p).State.Terminated = &corev1.ContainerStateTerminated{ExitCode: 137}
		w.failed[p.UID] = true
	case what == 2:
		delete(w.pods, name)
		if _, seen := w.ledger.begun[p.UID]; seen {
			w.failed[p.UID] = true
		}
	case what == 3 && p.Spec.RestartPolicy != corev1.RestartPolicyNever:
		w.container(p).RestartCount++
	case what == 4:
		p.DeletionTimestamp = &metav1.Time{Time: w.now}
		w.failed[p.UID] = true
	}
}

// container is the status of a Pod's container.
func (w *world) container(p *corev1.Pod) *corev1.ContainerStatus {
	if len(p.Status.ContainerStatuses) == 0 {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "pytorch"}}
	}
	return &p.Status.ContainerStatuses[0]
}

// TestNothingIsCountedTwice runs jobs through failures under an operator that
// dies at any step: every failure that is retried is counted once, as the ledger
// has it, and every job comes to the end that its policy says.
func TestNothingIsCountedTwice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		scope := rapid.SampledFrom([]string{"Replica", "Job"}).Draw(rt, "scope")
		limit := rapid.IntRange(0, 6).Draw(rt, "limit")
		policy := rapid.SampledFrom([]string{"ExitCode", "OnFailure"}).Draw(rt, "policy")
		f, job := read(t, strings.NewReplacer("POLICY", policy, "RUN", fmt.Sprintf("{restartScope: %s, backoffLimit: %d}", scope, limit)).Replace(pytorchJob))
		job.SetUID("job")
		w := &world{T: rt, f: f, job: job, pods: map[string]*corev1.Pod{}, now: noon, failed: map[types.UID]bool{}, ledger: newLedger()}
		names := []string{"j-master-0", "j-worker-0", "j-worker-1"}
		for range rapid.IntRange(10, 60).Draw(rt, "steps") {
			w.now = w.now.Add(time.Second)
			if job.State().IsFinished() {
				break
			}
			if rapid.Bool().Draw(rt, "operator") {
				w.reconcile(rapid.IntRange(0, 8).Draw(rt, "lives for"))
			} else {
				w.happen(rapid.SampledFrom(names).Draw(rt, "pod"), rapid.IntRange(0, 5).Draw(rt, "what"))
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
		inPlace := w.ledger.total()
		if int(s.Restarts) > limit+inPlace {
			rt.Errorf("%d retries, with a limit of %d", s.Restarts, limit)
		}
		if s.Is(v1.JobFailed) && len(w.failed)+inPlace <= limit {
			rt.Errorf("the job failed after %d failures, with a limit of %d", len(w.failed)+inPlace, limit)
		}
	})
}
