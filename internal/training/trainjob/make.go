// SPDX-License-Identifier: Apache-2.0

package trainjob

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "diwan.dev/diwan/api/jobset/v1alpha2"
	"diwan.dev/diwan/api/trainer/v1alpha1"
	"diwan.dev/diwan/internal/training/sshkey"
	"diwan.dev/diwan/internal/training/trainingruntime"
)

// make creates the objects of the training. The JobSet comes last: its Pods
// find what they need.
func (r *Reconciler) make(ctx context.Context, job *v1alpha1.TrainJob) error {
	objects, err := r.render(ctx, job)
	if err != nil {
		return err
	}
	if objects.HostFile != nil {
		if err := r.create(ctx, job, objects.HostFile); err != nil {
			return err
		}
	}
	if objects.Checkpoint != nil {
		if err := r.create(ctx, job, objects.Checkpoint); err != nil {
			return err
		}
	}
	if objects.SSHKeys != "" {
		if err := r.createKeys(ctx, job, objects.SSHKeys); err != nil {
			return err
		}
	}
	if objects.Authorities != nil {
		if err := r.create(ctx, job, objects.Authorities); err != nil {
			return err
		}
	}
	if objects.PodGroup != nil {
		if err := r.create(ctx, job, objects.PodGroup); err != nil {
			return err
		}
	}
	if objects.JobSet.Spec.TTLSecondsAfterFinished != nil {
		objects.JobSet.Finalizers = []string{holdUntilRead}
	}
	return r.create(ctx, job, objects.JobSet)
}

// render renders the objects from the runtime's snapshot.
func (r *Reconciler) render(ctx context.Context, job *v1alpha1.TrainJob) (*trainingruntime.Objects, error) {
	runtime, err := r.snapshot(ctx, job)
	if err != nil {
		return nil, err
	}
	objects, err := trainingruntime.Render(job, runtime)
	if err != nil {
		return nil, permanent{fmt.Errorf("cannot create the JobSet of TrainJob %s/%s: %w", job.Namespace, job.Name, err)}
	}
	if r.StatusServer.URL == "" {
		return objects, nil
	}
	authorities, err := r.StatusServer.Authorities()
	if err != nil {
		return nil, err
	}
	objects.AddStatus(job, r.StatusServer.URL, authorities)
	return objects, nil
}

// create creates an object of the job. An existing one is the job's own,
// created before.
func (r *Reconciler) create(ctx context.Context, job *v1alpha1.TrainJob, o client.Object) error {
	err := r.client.Create(ctx, o)
	kind, name := o.GetObjectKind().GroupVersionKind().Kind, client.ObjectKeyFromObject(o)
	if gvk, e := r.client.GroupVersionKindFor(o); e == nil {
		kind = gvk.Kind
		if apierrors.IsAlreadyExists(err) {
			have := &metav1.PartialObjectMetadata{}
			have.SetGroupVersionKind(gvk)
			if live := r.live.Get(ctx, name, have); live == nil && metav1.IsControlledBy(have, job) {
				return nil
			}
		}
	}
	switch {
	case err == nil:
		return nil
	case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err):
		return permanent{fmt.Errorf("cannot create %s %s: %w", kind, name, err)}
	}
	return fmt.Errorf("cannot create %s %s: %w", kind, name, err)
}

// renew updates a suspended JobSet to the job's current spec, which may resume
// it.
func (r *Reconciler) renew(ctx context.Context, job *v1alpha1.TrainJob, set *jobset.JobSet) error {
	objects, err := r.render(ctx, job)
	if err != nil {
		return err
	}
	want := objects.JobSet
	if equality.Semantic.DeepEqual(set.Spec, want.Spec) && equality.Semantic.DeepDerivative(want.Labels, set.Labels) &&
		equality.Semantic.DeepDerivative(want.Annotations, set.Annotations) {
		return nil
	}
	update := set.DeepCopy()
	update.Spec = want.Spec
	update.Labels, update.Annotations = merged(set.Labels, want.Labels), merged(set.Annotations, want.Annotations)
	if err := r.client.Update(ctx, update); err != nil {
		return fmt.Errorf("cannot update JobSet %s/%s: %w", set.Namespace, set.Name, err)
	}
	return nil
}

func merged(base, over map[string]string) map[string]string {
	for k, v := range over {
		if base == nil {
			base = map[string]string{}
		}
		base[k] = v
	}
	return base
}

// createKeys creates a Secret with a key pair, unless it exists.
func (r *Reconciler) createKeys(ctx context.Context, job *v1alpha1.TrainJob, name string) error {
	keys, err := sshkey.New()
	if err != nil {
		return err
	}
	return r.create(ctx, job, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: job.Namespace, OwnerReferences: []metav1.OwnerReference{*trainingruntime.Owner(job)}},
		Type:       corev1.SecretTypeSSHAuth,
		Immutable:  ptr.To(true),
		Data:       keys,
	})
}
