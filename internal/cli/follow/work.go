// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
	kubeflow "diwan.dev/diwan/api/kubeflow/v1beta1"
	trainer "diwan.dev/diwan/api/trainer/v1alpha1"
	"diwan.dev/diwan/internal/cli/progress"
)

// AddToScheme registers the types that are watched.
func AddToScheme(scheme *runtime.Scheme) error {
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, batchv1.AddToScheme, kubeflow.AddToScheme, v1.AddToScheme, trainer.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	return nil
}

// NewWork returns the model of an object, as the cluster has it, that is followed from now on.
// created is whether it did not exist before.
func NewWork(object *unstructured.Unstructured, created bool, now time.Time) (*progress.Work, error) {
	id := progress.ID{Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName()}
	var (
		objective progress.Objective
		status    progress.Status
		err       error
	)
	switch id.Kind {
	case "Experiment":
		var e kubeflow.Experiment
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &e)
		objective, status = Objective(&e), experimentStatus(&e)
	case "Job":
		var job batchv1.Job
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &job)
		status = jobStatus(&job)
	case "Pod":
		var pod corev1.Pod
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &pod)
		status = podStatus(&pod)
	case trainer.TrainJobKind:
		var job trainer.TrainJob
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &job)
		status = trainJobStatus(&job)
	case trainer.OptimizationJobKind:
		var job trainer.OptimizationJob
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &job)
		objective, status = optimizationJobObjective(&job), optimizationJobStatus(&job)
	default:
		if training := trainingJob(id.Kind); training != nil {
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, training)
			status = trainingStatus(training)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read %s %s/%s as the cluster has it: %w", id.Kind, id.Namespace, id.Name, err)
	}
	work := progress.NewWork(id, objective, created, now)
	work.SetStatus(status, now)
	return work, nil
}
