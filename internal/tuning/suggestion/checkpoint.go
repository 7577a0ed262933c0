// SPDX-License-Identifier: Apache-2.0

package suggestion

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/searchspace"
)

// checkpointSize is what Katib claims for the checkpoints of an experiment.
const checkpointSize = "5Gi"

// claimCheckpoints claims a volume shared by the trials, if with this
// algorithm they continue from each other's checkpoints. It is deleted with
// the suggestion.
func (r *Reconciler) claimCheckpoints(ctx context.Context, s *v1beta1.Suggestion) error {
	if searchspace.CheckpointDir(s.Spec.Algorithm) == "" {
		return nil
	}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       s.Namespace,
			Name:            searchspace.CheckpointClaim(s.Name, s.Spec.Algorithm),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s, v1beta1.GroupVersion.WithKind(v1beta1.SuggestionKind))},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(checkpointSize)},
			},
		},
	}
	if err := r.client.Create(ctx, claim); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("cannot claim a volume for the checkpoints of %s/%s: %w", s.Namespace, s.Name, err)
	}
	return nil
}
