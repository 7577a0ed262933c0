// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/platform/podusage"
)

// usage returns the resources that the trial's Pods used, nil if unknown. It
// is for information: a trial ends without it if Pods cannot be listed.
func (r *Reconciler) usage(ctx context.Context, t *v1beta1.Trial) *v1beta1.ResourceUsage {
	pods := metav1.PartialObjectMetadataList{}
	pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	// Any version will do: the API server's memory has seen the Pods' end, which told
	// of the run's, and for the newest version it would first ask its storage.
	anyVersion := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}}
	if err := r.live.List(ctx, &pods, client.InNamespace(t.Namespace), client.MatchingLabels{v1beta1.LabelTrial: t.Name}, anyVersion); err != nil {
		return nil
	}
	return sumUsage(pods.Items)
}

// sumUsage adds up the usage of Pods.
func sumUsage(pods []metav1.PartialObjectMetadata) *v1beta1.ResourceUsage {
	var cpu time.Duration
	var peak int64
	told := false
	for i := range pods {
		c, p, ok := podusage.Parse(pods[i].Annotations[podusage.Annotation])
		told = told || ok
		cpu, peak = cpu+c, max(peak, p)
	}
	if !told {
		return nil
	}
	u := &v1beta1.ResourceUsage{CPUTime: metav1.Duration{Duration: cpu}}
	if peak > 0 {
		u.PeakMemory = resource.NewQuantity(peak, resource.BinarySI)
	}
	return u
}
