// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"diwan.dev/diwan/internal/platform/cli/manifest"
)

// pod reads the spec of a Pod.
func pod(t *testing.T, spec string) *corev1.Pod {
	t.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default"}}
	if err := yaml.UnmarshalStrict([]byte(spec), &p.Spec); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestCapacity(t *testing.T) {
	t.Parallel()
	node := func(name, cpu string, more ...string) corev1.Node {
		n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"name": name}}}
		n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("8Gi")}
		for _, key := range more {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
		}
		return n
	}
	asks := func(what string) string { return "containers: [{name: a, resources: {requests: {" + what + "}}}]" }
	type set struct {
		spec  string
		count int
	}
	for name, tc := range map[string]struct {
		reason string
		sets   []set
		nodes  []corev1.Node
		want   string // "" for nothing
	}{
		"Fits":      {reason: "It fits exactly", sets: []set{{asks("cpu: 2, memory: 8Gi"), 1}}, nodes: []corev1.Node{node("a", "2")}},
		"OneOfTwo":  {reason: "One node is enough", sets: []set{{asks("cpu: 4"), 1}}, nodes: []corev1.Node{node("a", "2"), node("b", "4")}},
		"CPU":       {reason: "The remedy of a laptop is named", sets: []set{{asks("cpu: 3"), 1}}, nodes: []corev1.Node{node("a", "2")}, want: "requests 3 cpu, but node a has 2 (on a laptop `diwan up --cpus N`"},
		"GPU":       {reason: "What a node does not know it has none of", sets: []set{{asks("nvidia.com/gpu: 1"), 1}}, nodes: []corev1.Node{node("a", "2")}, want: "requests 1 nvidia.com/gpu, but node a has 0"},
		"Memory":    {reason: "More than the machine has", sets: []set{{asks("memory: 9Gi"), 1}}, nodes: []corev1.Node{node("a", "2")}, want: "requests 9Gi memory, but node a has 8Gi"},
		"Together":  {reason: "Replicas wait for each other", sets: []set{{asks("cpu: 2"), 1}, {asks("cpu: 2"), 2}}, nodes: []corev1.Node{node("a", "4")}, want: "cpu: the 3 Pods that run at the same time request 6 in total, but there is 4"},
		"Alone":     {reason: "One template of many Pods runs as they fit", sets: []set{{asks("cpu: 2"), 1}}, nodes: []corev1.Node{node("a", "2")}},
		"Selector":  {reason: "No node has the label", sets: []set{{"nodeSelector: {gpu: big}\ncontainers: [{name: a}]", 1}}, nodes: []corev1.Node{node("a", "2")}, want: "nodeSelector or affinity does not match node a"},
		"Taint":     {reason: "A taint keeps it off", sets: []set{{"containers: [{name: a}]", 1}}, nodes: []corev1.Node{node("a", "2", "own")}, want: "does not tolerate the taint own of node a"},
		"Passing":   {reason: "A node that is not ready will be", sets: []set{{"containers: [{name: a}]", 1}}, nodes: []corev1.Node{node("a", "2", "node.kubernetes.io/not-ready")}},
		"Tolerated": {reason: "Nor where it is tolerated", sets: []set{{"tolerations: [{operator: Exists}]\ncontainers: [{name: a}]", 1}}, nodes: []corev1.Node{node("a", "2", "own")}},
	} {
		var sets []PodSet
		for _, s := range tc.sets {
			sets = append(sets, PodSet{Pod: pod(t, s.spec), Count: s.count})
		}
		got := strings.Join(capacityLacks(sets, tc.nodes), "\n")
		if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %s: got %q, want %q", name, tc.reason, got, tc.want)
		}
	}
}

func TestReferences(t *testing.T) {
	t.Parallel()
	p := pod(t, `
serviceAccountName: robot
volumes:
- {name: a, configMap: {name: settings, items: [{key: k, path: p}]}}
- {name: b, secret: {secretName: maybe, optional: true}}
- {name: c, persistentVolumeClaim: {claimName: data}}
- {name: d, projected: {sources: [{secret: {name: keys}}, {serviceAccountToken: {path: t}}]}}
initContainers: [{name: i, envFrom: [{secretRef: {name: env}}]}]
containers: [{name: m, env: [{name: V, valueFrom: {configMapKeyRef: {name: settings, key: v}}}, {name: F, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}]
`)
	want := []reference{
		{"ServiceAccount", "serviceaccounts", "robot", ""}, configMap("settings", ""), configMap("settings", "k"),
		{"PersistentVolumeClaim", "persistentvolumeclaims", "data", ""}, secret("keys", ""), secret("env", ""), configMap("settings", "v"),
	}
	if diff := cmp.Diff(want, references(p), cmp.AllowUnexported(reference{})); diff != "" {
		t.Errorf("references (-want +got)\n%s", diff)
	}
}

func TestPodsOf(t *testing.T) {
	t.Parallel()
	const template = "template: {spec: {containers: [{name: m, command: [run]}]}}"
	for name, tc := range map[string]struct {
		reason, in string
		want       []string // place and count
	}{
		"Pod":   {reason: "A Pod is one itself", in: "{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {containers: [{name: m}]}}", want: []string{" 1"}},
		"Job":   {reason: "The Pods of a Job run as they fit", in: "{apiVersion: batch/v1, kind: Job, metadata: {name: x}, spec: {parallelism: 9, " + template + "}}", want: []string{"spec.template 1"}},
		"Other": {reason: "Other objects run nothing", in: "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: b}}"},
	} {
		objects, err := manifest.Parse([]byte(tc.in), manifest.Source{})
		if err != nil {
			t.Fatal(err)
		}
		sets, err := Kinds{}.PodsOf(t.Context(), objects[0].Unstructured, nil)
		if err != nil {
			t.Errorf("%s: %s: %v", name, tc.reason, err)
		}
		var got []string
		for _, s := range sets {
			got = append(got, fmt.Sprint(s.Where, " ", s.Count))
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s (-want +got)\n%s", name, tc.reason, diff)
		}
	}
}

func TestNeeded(t *testing.T) {
	t.Parallel()
	needy := Kind{
		GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Needy"},
		Needs: func(o *unstructured.Unstructured) []Reference {
			return []Reference{{"ConfigMap", "a", "m"}, {"ConfigMap", o.GetNamespace(), o.GetName()}}
		},
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(needy.GroupVersionKind)
	object.SetNamespace("b")
	object.SetName("n")
	for _, tc := range []struct {
		reason string
		given  given
		want   bool
	}{
		{"one of what it needs", given{{"ConfigMap", "b", "n"}: {}}, true},
		{"that of another namespace", given{{"ConfigMap", "a", "n"}: {}}, false},
		{"another kind", given{{"Secret", "a", "m"}: {}}, false},
	} {
		if got := tc.given.needed(Kinds{needy}, object); got != tc.want {
			t.Errorf("%s: needed is %t", tc.reason, got)
		}
	}
	if (given{{"ConfigMap", "b", "n"}: {}}).needed(Kinds{}, object) {
		t.Error("an object of an unknown kind needs something")
	}
}
