// SPDX-License-Identifier: Apache-2.0

package trainjob

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"diwan.dev/diwan/api/trainer/v1alpha1"
	"diwan.dev/diwan/internal/training/trainingruntime"
)

// The ConfigMap with a job's runtime is named <job>-runtime-snapshot.
const (
	snapshotSuffix = "-runtime-snapshot"
	snapshotKey    = "runtime"
)

// snapshot is the job's runtime as it was when the job began.
func (r *Reconciler) snapshot(ctx context.Context, job *v1alpha1.TrainJob) (*v1alpha1.TrainingRuntimeSpec, error) {
	name := types.NamespacedName{Namespace: job.Namespace, Name: job.Name + snapshotSuffix}
	for range 2 {
		have := &corev1.ConfigMap{}
		err := r.live.Get(ctx, name, have)
		switch {
		case err == nil:
			return read(job, have)
		case !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("cannot read ConfigMap %s: %w", name, err)
		}
		runtime, err := trainingruntime.Find(ctx, r.client, job)
		if err != nil {
			return nil, err
		}
		if errs := trainingruntime.Validate(job, trainingruntime.SpecOf(runtime)); len(errs) > 0 {
			return nil, permanent{fmt.Errorf("cannot use the runtime of TrainJob %s/%s: %w", job.Namespace, job.Name, errs.ToAggregate())}
		}
		text, err := yaml.Marshal(runtime)
		if err != nil {
			return nil, fmt.Errorf("cannot encode the runtime of TrainJob %s/%s: %w", job.Namespace, job.Name, err)
		}
		err = r.client.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: name.Name, Namespace: name.Namespace, OwnerReferences: []metav1.OwnerReference{*trainingruntime.Owner(job)}},
			Data:       map[string]string{snapshotKey: string(text)},
		})
		switch {
		case err == nil:
			return trainingruntime.SpecOf(runtime), nil
		case !apierrors.IsAlreadyExists(err):
			return nil, fmt.Errorf("cannot create ConfigMap %s: %w", name, err)
		}
	}
	return nil, fmt.Errorf("cannot read ConfigMap %s: it keeps being created and deleted", name)
}

// read reads the runtime in a snapshot.
func read(job *v1alpha1.TrainJob, m *corev1.ConfigMap) (*v1alpha1.TrainingRuntimeSpec, error) {
	if !metav1.IsControlledBy(m, job) {
		return nil, fmt.Errorf("cannot use ConfigMap %s/%s: it is not owned by this TrainJob; delete it or rename the TrainJob", m.Namespace, m.Name)
	}
	runtime := trainingruntime.New(job)
	if err := yaml.Unmarshal([]byte(m.Data[snapshotKey]), runtime); err != nil {
		return nil, permanent{fmt.Errorf("cannot read the runtime in ConfigMap %s/%s: %w", m.Namespace, m.Name, err)}
	}
	if runtime.GetName() != job.Spec.RuntimeRef.Name {
		return nil, permanent{fmt.Errorf("cannot use ConfigMap %s/%s: its runtime is %q, but the job's is %q", m.Namespace, m.Name, runtime.GetName(), job.Spec.RuntimeRef.Name)}
	}
	return trainingruntime.SpecOf(runtime), nil
}
