// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

// Objects implements Framework: the autoscaler of an elastic job with metrics.
func (PyTorch) Objects(job v1.Job, _ map[Replica]*corev1.Pod) []client.Object {
	e := job.(*v1.PyTorchJob).Spec.ElasticPolicy
	if e == nil {
		return nil
	}
	return autoscaler(job, e.MinReplicas, e.MaxReplicas, e.Metrics)
}

// Objects implements Framework: the autoscaler of an elastic job with metrics.
func (Paddle) Objects(job v1.Job, _ map[Replica]*corev1.Pod) []client.Object {
	e := job.(*v1.PaddleJob).Spec.ElasticPolicy
	if e == nil {
		return nil
	}
	return autoscaler(job, e.MinReplicas, e.MaxReplicas, e.Metrics)
}

var scaled = []schema.GroupVersionKind{autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler")}

// Owns implements Framework.
func (PyTorch) Owns() []schema.GroupVersionKind { return scaled }

// Owns implements Framework.
func (Paddle) Owns() []schema.GroupVersionKind { return scaled }

// autoscaler changes the number of a job's workers by metrics, none without.
func autoscaler(job v1.Job, least, most *int32, metrics []autoscalingv2.MetricSpec) []client.Object {
	if len(metrics) == 0 {
		return nil
	}
	return []client.Object{&autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metadata(job, job.GetName(), nil),
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{
				APIVersion: v1.GroupVersion.String(), Kind: job.Traits().Kind, Name: job.GetName(),
			},
			MinReplicas: least,
			MaxReplicas: *most,
			Metrics:     metrics,
		},
	}}
}
