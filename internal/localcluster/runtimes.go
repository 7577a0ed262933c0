// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/api/trainer/v1alpha1"
	"diwan.dev/diwan/config/runtimes"
	"diwan.dev/diwan/internal/node/network"
)

// trainerNamespace is where Kubeflow's SDK looks for what the cluster can do.
const trainerNamespace = "kubeflow-system"

// installTrainer installs the runtimes that TrainJobs name, what tells Kubeflow's
// SDK that there are some, and the Service by which jobs tell how far they are.
func installTrainer(ctx context.Context, c client.Client, plan network.Plan) error {
	all, err := runtimes.All()
	if err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: trainerNamespace}}
	if err := c.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("cannot create namespace %s: %w", trainerNamespace, err)
	}
	objects := []client.Object{&corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: "kubeflow-trainer-public", Namespace: trainerNamespace},
		Data:       map[string]string{"kubeflow_trainer_version": runtimes.Version},
	}}
	for _, r := range all {
		r.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.ClusterTrainingRuntimeKind))
		objects = append(objects, r)
	}
	for _, o := range append(objects, statusServerService(plan)...) {
		if err := install(ctx, c, o); err != nil {
			return err
		}
	}
	return nil
}
