// SPDX-License-Identifier: Apache-2.0

package diwan_test

import (
	"context"
	"fmt"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

// TestOwnedObjectsAreMadeAgain deletes what jobs have beside Pods.
func TestOwnedObjectsAreMadeAgain(t *testing.T) {
	l := newLab(t, forever)
	pod := func(container string) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"diwan.dev/test": "the-test-is-the-node"},
			Containers:   []corev1.Container{{Name: container, Image: "none", Command: []string{"train"}}},
		}}
	}
	mpi := &v1.MPIJob{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "mpi"}}
	mpi.Spec.MPIReplicaSpecs = map[v1.ReplicaType]*v1.ReplicaSpec{
		v1.MPILauncher: {Replicas: ptr.To(int32(1)), Template: pod("mpi")},
		v1.Worker:      {Replicas: ptr.To(int32(1)), Template: pod("mpi")},
	}
	elastic := &v1.PyTorchJob{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "elastic"}}
	elastic.Spec.ElasticPolicy = &v1.ElasticPolicy{MinReplicas: ptr.To(int32(1)), MaxReplicas: ptr.To(int32(2)), Metrics: []autoscalingv2.MetricSpec{{
		Type: autoscalingv2.ResourceMetricSourceType,
		Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceCPU,
			Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: ptr.To(int32(80))}},
	}}}
	elastic.Spec.PyTorchReplicaSpecs = map[v1.ReplicaType]*v1.ReplicaSpec{v1.Worker: {Replicas: ptr.To(int32(1)), Template: pod("pytorch")}}
	for _, job := range []client.Object{mpi, elastic} {
		if err := l.client.Create(t.Context(), job); err != nil {
			t.Fatal(err)
		}
	}
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: l.namespace, Name: name} }
	for _, o := range []client.Object{
		&corev1.ConfigMap{ObjectMeta: named("mpi-config")},
		&corev1.ServiceAccount{ObjectMeta: named("mpi-launcher")},
		&rbacv1.Role{ObjectMeta: named("mpi-launcher")},
		&rbacv1.RoleBinding{ObjectMeta: named("mpi-launcher")},
		&autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: named("elastic")},
		&corev1.Service{ObjectMeta: named("elastic-worker-0")},
	} {
		l.eventually(func() string { return l.other(o, "") })
		uid := o.GetUID()
		if err := l.client.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		l.eventually(func() string { return l.other(o, uid) })
	}
}

// other says that an object with another UID than this one is missing.
func (l *lab) other(o client.Object, than types.UID) string {
	err := l.client.Get(context.WithoutCancel(l.t.Context()), client.ObjectKeyFromObject(o), o)
	if err == nil && o.GetUID() != than && o.GetDeletionTimestamp() == nil {
		return ""
	}
	return fmt.Sprintf("%T %s (%v)", o, o.GetName(), err)
}
