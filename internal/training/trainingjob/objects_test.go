// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"fmt"
	"strings"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// someObjects are one of each kind that jobs have beside Pods and Services of
// replicas, as they are to be.
func someObjects(t *testing.T) []client.Object {
	t.Helper()
	f, mpi := read(t, `{kind: MPIJob, spec: {mpiReplicaSpecs: {
		Launcher: {replicas: 1, template: {spec: {containers: [{name: mpi, image: i}]}}}, Worker: {replicas: 2, template: {spec: {containers: [{name: mpi, image: i}]}}}}}}`)
	objects := f.Objects(mpi, nil)
	f, later := readPi(t, "", "", "")
	objects = append(objects, f.Objects(later, nil)[0])
	f, elastic := read(t, `{kind: PyTorchJob, spec: {elasticPolicy: {minReplicas: 1, maxReplicas: 3, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]},
		pytorchReplicaSpecs: {Worker: {replicas: 2, template: {spec: {containers: [{name: pytorch, image: i}]}}}}}}`)
	objects = append(objects, f.Objects(elastic, nil)...)
	f, together := read(t, strings.NewReplacer("POLICY", "{}", "SUSPEND", "").Replace(gangJob))
	objects = append(objects, gang{f, volcano, false}.Objects(together, nil)...)
	for _, o := range objects {
		label(mpi, o)
	}
	return objects
}

// TestSays changes what there is: what the API server and others add stays,
// anything else is written again.
func TestSays(t *testing.T) {
	t.Parallel()
	set := func(o *unstructured.Unstructured, value string, path ...string) {
		if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
			t.Error(err)
		}
	}
	cases := map[string]struct {
		reason string
		change func(client.Object)
		not    string // the kind of which something is to be written
	}{
		"Same": {"nothing is written without need", func(client.Object) {}, ""},
		"Added": {"the API server has defaults and states, clusters give accounts their secrets", func(o client.Object) {
			o.SetUID("uid")
			o.SetCreationTimestamp(metav1.NewTime(noon.Add(time.Second)))
			o.SetAnnotations(map[string]string{"of": "others", "a": "b"})
			switch o := o.(type) {
			case *corev1.ServiceAccount:
				o.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "s"}}
			case *corev1.Service:
				o.Spec.ClusterIPs, o.Spec.Type = []string{"None"}, corev1.ServiceTypeClusterIP
			case *autoscalingv2.HorizontalPodAutoscaler:
				o.Status.DesiredReplicas = 2
			case *unstructured.Unstructured:
				set(o, "Running", "status", "phase")
			}
		}, ""},
		"Files": {"mpirun reads which workers there are", func(o client.Object) {
			if c, ok := o.(*corev1.ConfigMap); ok {
				c.Data[mpiHostfile] += "j-worker-2 slots=1\n"
			}
		}, "ConfigMap"},
		"Fewer": {"a launcher has no right to what is no longer a worker", func(o client.Object) {
			if r, ok := o.(*rbacv1.Role); ok {
				r.Rules[1].ResourceNames = append(r.Rules[1].ResourceNames, "j-worker-2")
			}
		}, "Role"},
		"Metric": {"nor does a job scale by a metric that it does not name", func(o client.Object) {
			if h, ok := o.(*autoscalingv2.HorizontalPodAutoscaler); ok {
				h.Spec.Metrics = append(h.Spec.Metrics, h.Spec.Metrics[0])
			}
		}, "HorizontalPodAutoscaler"},
		"Priority": {"or has a priority that was taken back", func(o client.Object) {
			if g, ok := o.(*unstructured.Unstructured); ok {
				set(g, "high", "spec", "priorityClassName")
			}
		}, "Unstructured"},
		"Label": {"by its label an object is watched", func(o client.Object) {
			if b, ok := o.(*rbacv1.RoleBinding); ok {
				b.SetLabels(nil)
			}
		}, "RoleBinding"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, o := range someObjects(t) {
				have := o.DeepCopyObject().(client.Object)
				tc.change(have)
				got, err := says(have, o)
				want := tc.not == "" || !strings.HasSuffix(fmt.Sprintf("%T", o), "."+tc.not)
				if err != nil || got != want {
					t.Errorf("%s: that %T says what it should is %v, %v", tc.reason, o, got, err)
				}
			}
		})
	}
}
