// SPDX-License-Identifier: Apache-2.0

package trainingruntime

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/api/trainer/v1alpha1"
)

// New is an empty runtime of the kind to which a job refers: one for the cluster,
// unless it names the other kind.
func New(job *v1alpha1.TrainJob) client.Object {
	if job.Spec.RuntimeRef.Is(v1alpha1.TrainingRuntimeKind) {
		return &v1alpha1.TrainingRuntime{}
	}
	return &v1alpha1.ClusterTrainingRuntime{}
}

// SpecOf is the spec of a runtime of either kind; nil of anything else.
func SpecOf(runtime client.Object) *v1alpha1.TrainingRuntimeSpec {
	switch r := runtime.(type) {
	case *v1alpha1.TrainingRuntime:
		return &r.Spec
	case *v1alpha1.ClusterTrainingRuntime:
		return &r.Spec
	}
	return nil
}

// Find reads the runtime to which a job refers.
func Find(ctx context.Context, reader client.Reader, job *v1alpha1.TrainJob) (client.Object, error) {
	runtime := New(job)
	key := types.NamespacedName{Name: job.Spec.RuntimeRef.Name}
	if _, namespaced := runtime.(*v1alpha1.TrainingRuntime); namespaced {
		key.Namespace = job.Namespace
	}
	if err := reader.Get(ctx, key, runtime); err != nil {
		return nil, fmt.Errorf("cannot read the runtime %s of TrainJob %s/%s: %w", key, job.Namespace, job.Name, err)
	}
	return runtime, nil
}
