// SPDX-License-Identifier: Apache-2.0

package node

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"diwan.dev/diwan/internal/platform/node/image"
	"diwan.dev/diwan/internal/platform/node/volume"
)

func TestEnvironment(t *testing.T) {
	yes := true
	objects := []runtime.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cm"}, Data: map[string]string{"k": "v", "other.key": "o", "bad=key": "x"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "sec"}, Data: map[string][]byte{"k": []byte("s")}},
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", Labels: map[string]string{"l": "1"}},
		Spec:       corev1.PodSpec{NodeName: "n", ServiceAccountName: "sa"},
		Status:     corev1.PodStatus{PodIP: "10.0.0.2", HostIP: "10.0.0.1"},
	}
	ref := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	fieldOf := func(path string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
	}
	cases := map[string]struct {
		reason    string
		container corev1.Container
		want      map[string]string
		err       string
	}{
		"expansion": {"a variable sees those before it, and Services; $$ escapes",
			corev1.Container{Env: []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "$(A)-$(C)-$$(A)-$(DB_HOST)"}, {Name: "C", Value: "3"}}},
			map[string]string{"A": "1", "B": "1-$(C)-$(A)-db", "C": "3"}, ""},
		"fields": {"all fields of the downward API",
			corev1.Container{Env: []corev1.EnvVar{{Name: "N", ValueFrom: fieldOf("metadata.name")}, {Name: "L", ValueFrom: fieldOf("metadata.labels['l']")},
				{Name: "P", ValueFrom: fieldOf("status.podIP")}, {Name: "H", ValueFrom: fieldOf("status.hostIP")}, {Name: "S", ValueFrom: fieldOf("spec.serviceAccountName")}, {Name: "O", ValueFrom: fieldOf("spec.nodeName")}}},
			map[string]string{"N": "p", "L": "1", "P": "10.0.0.2", "H": "10.0.0.1", "S": "sa", "O": "n"}, ""},
		"resources": {"a container's own limits, and the node's where it has none",
			corev1.Container{Name: "c", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Mi")}},
				Env: []corev1.EnvVar{{Name: "M", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.memory"}}},
					{Name: "C", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"}}}}},
			map[string]string{"M": "2097152", "C": "4"}, ""},
		"keys": {"keys of ConfigMaps and Secrets",
			corev1.Container{Env: []corev1.EnvVar{
				{Name: "V", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: ref("cm"), Key: "k"}}},
				{Name: "S", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: ref("sec"), Key: "k"}}}}},
			map[string]string{"V": "v", "S": "s"}, ""},
		"all keys": {"with a prefix, and without those that cannot be names; env wins",
			corev1.Container{EnvFrom: []corev1.EnvFromSource{{Prefix: "P_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref("cm")}}}, Env: []corev1.EnvVar{{Name: "P_k", Value: "mine"}}},
			map[string]string{"P_k": "mine", "P_other.key": "o"}, ""},
		"optional": {"what may be absent is left out",
			corev1.Container{EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: ref("none"), Optional: &yes}}},
				Env: []corev1.EnvVar{{Name: "V", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: ref("cm"), Key: "none", Optional: &yes}}}}},
			map[string]string{}, ""},
		"missing object": {"kubelet's words", corev1.Container{EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref("none")}}}},
			nil, `configmap "none" not found`},
		"missing key": {"kubelet's words", corev1.Container{Env: []corev1.EnvVar{{Name: "V", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: ref("sec"), Key: "none"}}}}},
			nil, "couldn't find key none in Secret ns/sec"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := pod.DeepCopy()
			p.Spec.Containers = []corev1.Container{tc.container}
			e := &environment{
				objects: volume.NewObjects(fake.NewSimpleClientset(objects...)), pod: p, declared: map[string]string{},
				services: map[string]string{"DB_HOST": "db"}, allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")},
			}
			err := e.declare(t.Context(), &p.Spec.Containers[0])
			if tc.err != "" {
				if err == nil || err.Error() != tc.err {
					t.Fatalf("%s: got error %v, want %s", tc.reason, err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, e.declared); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestEnvironmentLayers(t *testing.T) {
	e := &environment{services: map[string]string{"S": "service"}, declared: map[string]string{"A": "own", "S": "own"}}
	img := &image.Environment{PathDirs: []string{"/img/bin"}, Env: map[string]string{"A": "image", "B": "image"}}
	through := passed([]string{"PATH=/usr/bin", "HOME=/root", "SECRET=x", "LC_ALL=C", "B=host"}, []string{"PATH", "HOME", "LC_*", "B"})
	want := []string{"A=own", "B=image", "HOME=/root", "LC_ALL=C", "PATH=/img/bin:/usr/bin", "S=own"}
	if diff := cmp.Diff(want, e.list(through, img)); diff != "" {
		t.Errorf("later layers win, and only what is named passes through (-want +got):\n%s", diff)
	}
	if text, err := e.expandStrict("$(A)/x"); err != nil || text != "own/x" {
		t.Errorf("subPathExpr: %q, %v", text, err)
	}
	if _, err := e.expandStrict("$(NONE)"); err == nil {
		t.Error("an unknown variable in subPathExpr is no error")
	}
}
