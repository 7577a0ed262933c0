// SPDX-License-Identifier: Apache-2.0

package gang

import (
	_ "embed"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// Coscheduling and Volcano are the APIs whose PodGroups are known.
var (
	Coscheduling = schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}
	Volcano      = schema.GroupVersionResource{Group: "scheduling.volcano.sh", Version: "v1beta1", Resource: "podgroups"}
)

var apis = []schema.GroupVersionResource{Coscheduling, Volcano}

// How a Pod says to which group it belongs.
const (
	coschedulingLabel = "scheduling.x-k8s.io/pod-group"
	volcanoAnnotation = "scheduling.k8s.io/group-name"
	volcanoAlias      = "scheduling.volcano.sh/group-name"
)

// jobLabel names the training job of a Pod.
const jobLabel = "training.kubeflow.org/job-name"

// defaultTimeout is how long Pods that found a node wait for the others, unless
// their group says otherwise.
const defaultTimeout = time.Minute

// Key names a group.
type Key struct {
	API             schema.GroupVersionResource
	Namespace, Name string
}

// String implements fmt.Stringer.
func (k Key) String() string { return fmt.Sprintf("PodGroup %s/%s", k.Namespace, k.Name) }

// KeyOf returns the group that a Pod belongs to, if it belongs to one. Pods of a
// PodGroup of Kubernetes' own are placed by the scheduler itself.
func KeyOf(pod *corev1.Pod) (Key, bool) {
	if pod.Spec.SchedulingGroup != nil {
		return Key{}, false
	}
	if name := pod.Labels[coschedulingLabel]; name != "" {
		return Key{Coscheduling, pod.Namespace, name}, true
	}
	for _, annotation := range []string{volcanoAnnotation, volcanoAlias} {
		if name := pod.Annotations[annotation]; name != "" {
			return Key{Volcano, pod.Namespace, name}, true
		}
	}
	return Key{}, false
}

// Group is the specification of a PodGroup.
type Group struct {
	Key
	// Min is how many Pods are placed at once, at least 1.
	Min int
	// Resources must be there before any Pod is tried.
	Resources amounts
	// Timeout bounds how long a Pod holds a place for the others.
	Timeout time.Duration
	// PriorityClass, if set, overrides that of the Pods in the queue.
	PriorityClass string
	// Created orders groups of one priority.
	Created time.Time
}

// read reads a PodGroup. What it does not understand counts as not said: the
// API server has checked the schema.
func read(key Key, object *unstructured.Unstructured) Group {
	g := Group{Key: key, Min: 1, Timeout: defaultTimeout, Resources: amounts{}, Created: object.GetCreationTimestamp().Time}
	if n, ok, _ := unstructured.NestedInt64(object.Object, "spec", "minMember"); ok {
		g.Min = max(1, int(n))
	}
	if n, ok, _ := unstructured.NestedInt64(object.Object, "spec", "scheduleTimeoutSeconds"); ok && n > 0 {
		g.Timeout = time.Duration(n) * time.Second
	}
	g.PriorityClass, _, _ = unstructured.NestedString(object.Object, "spec", "priorityClassName")
	asked, _, _ := unstructured.NestedMap(object.Object, "spec", "minResources")
	for name, value := range asked {
		if q, err := resource.ParseQuantity(fmt.Sprint(value)); err == nil {
			g.Resources.addQuantity(corev1.ResourceName(name), q)
		}
	}
	return g
}

//go:embed podgroups.yaml
var definitions string

// Definitions returns the kinds of both APIs as far as they are known here, for
// clusters that have no other scheduler. The caller owns the result.
func Definitions() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, text := range strings.Split(definitions, "\n---\n") {
		d := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict([]byte(text), d); err != nil {
			return nil, fmt.Errorf("cannot decode the definition of PodGroups: %w", err)
		}
		all = append(all, d)
	}
	return all, nil
}
