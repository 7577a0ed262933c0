// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"context"
	"fmt"
	"maps"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

// newLauncher returns the Job of a launcher. Its TTL is set when the end of the
// MPIJob is recorded, so that the Job is not deleted before its outcome was
// observed.
func newLauncher(f Framework, j *v1.MPIJob) *batchv1.Job {
	pod := newPod(f, j, Replica{v1.MPILauncher, 0})
	set := jobLabels(j)
	set["app"] = j.Name
	return &batchv1.Job{
		ObjectMeta: metadata(j, pod.Name, set),
		Spec: batchv1.JobSpec{
			BackoffLimit:          j.Spec.RunPolicy.BackoffLimit,
			ActiveDeadlineSeconds: j.Spec.RunPolicy.ActiveDeadlineSeconds,
			Suspend:               ptr.To(suspended(j)),
			PodReplacementPolicy:  ptr.To(batchv1.Failed), // two launchers at once would meet in the workers
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels, Annotations: pod.Annotations},
				Spec:       pod.Spec,
			},
		},
	}
}

// launch plans what the launcher's Job should be. The launcher is no Pod of the job's
// own.
func (d *launched) launch() {
	d.create = slices.DeleteFunc(d.create, func(r Replica) bool { return r.Type == v1.MPILauncher })
	have, want := d.have.job, newLauncher(d.f, d.j)
	finished := d.status.IsFinished()
	early := d.waits() && !suspended(d.j) && !d.ready()
	switch {
	case have != nil:
	case finished, early:
		return
	default:
		d.launcher = want
		return
	}
	next := have.DeepCopy()
	over := jobCondition(have, batchv1.JobComplete) != nil || jobCondition(have, batchv1.JobFailed) != nil
	switch {
	case over:
	case finished, suspended(d.j):
		next.Spec.Suspend = ptr.To(true)
	case d.held() && !early:
		next.Spec.Suspend = ptr.To(false)
		direct(&next.Spec.Template, &want.Spec.Template)
	}
	if finished { // and that is written down before the Job is changed
		next.Spec.TTLSecondsAfterFinished = d.j.Spec.RunPolicy.TTLSecondsAfterFinished
	}
	if !equality.Semantic.DeepEqual(have.Spec, next.Spec) {
		d.launcher = next
	}
}

// direct updates the mutable Pod fields of a resumed launcher: its placement,
// which queues decide when they admit a job.
func direct(have, want *corev1.PodTemplateSpec) {
	merge := func(into *map[string]string, from map[string]string) {
		if *into == nil && len(from) > 0 {
			*into = map[string]string{}
		}
		maps.Copy(*into, from)
	}
	merge(&have.Labels, want.Labels)
	merge(&have.Annotations, want.Annotations)
	have.Spec.NodeSelector = want.Spec.NodeSelector
	have.Spec.Tolerations = want.Spec.Tolerations
	have.Spec.SchedulingGates = want.Spec.SchedulingGates
}

// held reports whether the launcher cannot run yet.
func (d *launched) held() bool {
	return d.have.job == nil || ptr.Deref(d.have.job.Spec.Suspend, false)
}

// waits reports whether the launcher begins when the workers are ready.
func (d *launched) waits() bool {
	return d.j.Spec.LauncherCreationPolicy == v1.LauncherWaitForWorkersReady
}

// ready reports whether all workers are.
func (d *launched) ready() bool {
	n := 0
	for r, p := range d.pods {
		for _, c := range p.Status.Conditions {
			if r.Type == v1.Worker && c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				n++
			}
		}
	}
	return n == d.workers()
}

// readLauncher returns what there is of a job's launcher.
func (r *reconciler) readLauncher(ctx context.Context, j *v1.MPIJob) (launcher, error) {
	job := &batchv1.Job{}
	key := client.ObjectKey{Namespace: j.Namespace, Name: launcherName(j)}
	if err := r.owned.Get(ctx, key, job); err != nil {
		if apierrors.IsNotFound(err) {
			return launcher{}, nil
		}
		return launcher{}, fmt.Errorf("cannot read Job %s: %w", key, err)
	}
	if !metav1.IsControlledBy(job, j) {
		return launcher{}, nil // it stands in the way, which creating ours tells
	}
	pods, err := r.podsOf(ctx, job)
	return launcher{job, pods}, err
}

// launch creates the launcher's Job, or updates the existing one. The template of
// one that ran before may change once it has no start time.
func (r *reconciler) launch(ctx context.Context, job v1.Job, have, want *batchv1.Job) error {
	if have == nil {
		return r.create(ctx, job, want, "Job")
	}
	failed := func(err error) error {
		return fmt.Errorf("cannot change Job %s/%s: %w", want.Namespace, want.Name, err)
	}
	if have.Status.StartTime != nil && !equality.Semantic.DeepEqual(have.Spec.Template, want.Spec.Template) {
		reset := have.DeepCopy()
		reset.Status.StartTime = nil
		if err := r.client.Status().Patch(ctx, reset, client.MergeFrom(have)); err != nil {
			return failed(err)
		}
	}
	if err := r.client.Patch(ctx, want, client.MergeFrom(have)); client.IgnoreNotFound(err) != nil {
		return failed(err)
	}
	return nil
}
