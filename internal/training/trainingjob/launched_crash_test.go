// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

// launchedWorld is an MPIJob of v2beta1 with its workers and its launcher's Job,
// under an operator that may die at any moment, and the Job and TTL controllers.
type launchedWorld struct {
	*rapid.T
	f        Framework
	job      *v1.MPIJob
	workers  map[string]*corev1.Pod // by name
	launcher *batchv1.Job
	now      time.Time
	made     int
	launched int // how many launchers' Jobs were made
	runs     int // how many of them ended
}

// reconcile does the first steps of what is decided.
func (w *launchedWorld) reconcile(steps int) {
	var pods []*corev1.Pod
	for _, p := range w.workers {
		pods = append(pods, p)
	}
	p := decide(w.f, w.job, have{pods: pods, launcher: launcher{job: w.launcher}}, w.now)
	next := func() bool { steps--; return steps >= 0 }
	if p.status != nil && next() {
		if w.job.Status.IsFinished() && conditions(p.status) != conditions(&w.job.Status) {
			w.Fatalf("an ended job goes from %s to %s", conditions(&w.job.Status), conditions(p.status))
		}
		w.job.Status = *p.status
	}
	for _, pod := range p.delete {
		if !next() {
			return
		}
		delete(w.workers, pod.Name)
	}
	for _, r := range p.create {
		if !next() {
			return
		}
		pod := newPod(w.f, w.job, r)
		w.made++
		pod.UID, pod.Status.Phase = types.UID(fmt.Sprintf("uid-%04d", w.made)), corev1.PodPending
		w.workers[pod.Name] = pod
	}
	if p.launcher == nil || !next() {
		return
	}
	if w.launcher == nil {
		w.launched++
	}
	w.launcher = p.launcher
}

// end ends the launcher's Job, if it runs.
func (w *launchedWorld) end(t batchv1.JobConditionType) {
	j := w.launcher
	if j == nil || *j.Spec.Suspend || jobCondition(j, batchv1.JobComplete) != nil || jobCondition(j, batchv1.JobFailed) != nil {
		return
	}
	w.runs++
	j.Status.Conditions = []batchv1.JobCondition{{Type: t, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded"}}
	j.Status.CompletionTime = &metav1.Time{Time: w.now}
}

// happen lets something happen.
func (w *launchedWorld) happen(what int) {
	for name, p := range w.workers {
		switch {
		case p.Status.Phase == corev1.PodPending:
			p.Status.Phase = corev1.PodRunning
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		case what == 1:
			p.Status.Phase = corev1.PodFailed
		case what == 2:
			delete(w.workers, name)
		}
	}
	switch {
	case what == 3:
		w.end(batchv1.JobComplete)
	case what == 4:
		w.end(batchv1.JobFailed)
	case what == 5:
		w.job.Spec.RunPolicy.Suspend = ptr.To(!*w.job.Spec.RunPolicy.Suspend)
	case w.launcher != nil && w.launcher.Spec.TTLSecondsAfterFinished != nil && w.launcher.Status.Conditions != nil:
		w.launcher = nil // its time is over at once
	}
}

// TestLaunchesOnce runs MPIJobs of v2beta1 through whatever happens: the launcher
// runs to one end, also when its Job is gone as soon as it may be, and every job
// comes to its end.
func TestLaunchesOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		more := rapid.SampledFrom([]string{"", "launcherCreationPolicy: WaitForWorkersReady,"}).Draw(rt, "creation")
		policy := rapid.SampledFrom([]string{"", "restartPolicy: OnFailure,"}).Draw(rt, "policy")
		run := rapid.SampledFrom([]string{"cleanPodPolicy: None", "cleanPodPolicy: All"}).Draw(rt, "clean") + ", suspend: false"
		f, job := readPi(t, more, run, policy)
		job.Spec.RunPolicy.TTLSecondsAfterFinished = ptr.To[int32](0)
		w := &launchedWorld{T: rt, f: f, job: job, workers: map[string]*corev1.Pod{}, now: noon}
		for range rapid.IntRange(5, 60).Draw(rt, "steps") {
			w.now = w.now.Add(time.Second)
			if rapid.Bool().Draw(rt, "operator") {
				w.reconcile(rapid.IntRange(0, 8).Draw(rt, "lives for"))
			} else {
				w.happen(rapid.IntRange(0, 8).Draw(rt, "what"))
			}
		}
		job.Spec.RunPolicy.Suspend = ptr.To(false)
		for range 20 { // the operator lives, and what runs succeeds
			w.now = w.now.Add(time.Second)
			w.reconcile(100)
			w.happen(3)
		}
		s := &job.Status
		if !s.IsFinished() {
			rt.Fatalf("the job does not end: %s, %d workers, launcher %v", conditions(s), len(w.workers), w.launcher != nil)
		}
		if s.Is(v1.JobSucceeded) == s.Is(v1.JobFailed) || !strings.HasPrefix(conditions(s), "Created") {
			rt.Errorf("the job ends with %s", conditions(s))
		}
		if w.launched > 1 || w.runs > 1 {
			rt.Errorf("%d launchers were made, %d ran to an end", w.launched, w.runs)
		}
		if strings.Contains(run, "All") && len(w.workers) > 0 {
			rt.Errorf("%d workers are left", len(w.workers))
		}
	})
}
