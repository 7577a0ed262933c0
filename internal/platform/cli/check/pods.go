// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Kind is a kind of object whose Pods are not just those of its templates.
type Kind struct {
	schema.GroupVersionKind
	// Pods returns the Pods that would come of an object, and may change it. Nil: those of its templates.
	Pods func(ctx context.Context, object *unstructured.Unstructured, found Found) ([]PodSet, error)
	// Needs are the objects to which one refers that the API server looks at to admit it. Nil: none.
	Needs func(object *unstructured.Unstructured) []Reference
}

// Reference names an object.
type Reference struct{ Kind, Namespace, Name string }

// PodSet are Pods of one template that an object would have.
type PodSet struct {
	// Where is the template's place in the object; "" for a Pod itself.
	Where string
	Pod   *corev1.Pod
	// Count is how many there would be at the same time, if the job cannot go on with fewer; else 1.
	Count int
	// Made are names of objects that come with the Pods, such as a Secret with keys.
	Made []string
}

// Found reads what an object refers to, by its name alone, among the objects that are checked and in the
// cluster.
type Found struct {
	client.Reader
	kinds Kinds
}

// PodsOf returns the Pods that would come of another object, such as what a trial runs.
func (f Found) PodsOf(ctx context.Context, object *unstructured.Unstructured) ([]PodSet, error) {
	return f.kinds.PodsOf(ctx, object, f.Reader)
}

// Kinds are those whose Pods are not just those of their templates.
type Kinds []Kind

// named is what is known of a kind; all is empty where nothing is.
func (kinds Kinds) named(gvk schema.GroupVersionKind) Kind {
	if i := slices.IndexFunc(kinds, func(k Kind) bool { return k.GroupVersionKind == gvk }); i >= 0 {
		return kinds[i]
	}
	return Kind{}
}

// PodsOf returns the Pods that would come of an object.
func (kinds Kinds) PodsOf(ctx context.Context, object *unstructured.Unstructured, reader client.Reader) ([]PodSet, error) {
	if k := kinds.named(object.GroupVersionKind()); k.Pods != nil {
		return k.Pods(ctx, object, Found{reader, kinds})
	}
	return Templates(object, false)
}

// Templates returns the Pods of the templates in an object; of replicas that run together, all.
func Templates(object *unstructured.Unstructured, together bool) ([]PodSet, error) {
	var pods []PodSet
	err := templates(object.Object, "", object.GetNamespace(), together, 1, &pods)
	return pods, err
}

// Convert reads an object into one of its Go type.
func Convert(object *unstructured.Unstructured, into any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into)
}

// templates collects what has the shape of a Pod or of a template of Pods, at whatever depth.
func templates(value any, where, namespace string, together bool, count int, into *[]PodSet) error {
	switch value := value.(type) {
	case map[string]any:
		if spec, ok := value["spec"].(map[string]any); ok {
			if _, ok := spec["containers"].([]any); ok {
				pod := &corev1.Pod{}
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"metadata": value["metadata"], "spec": spec}, pod); err != nil {
					return fmt.Errorf("%s: %w", cmp.Or(where, "spec"), err)
				}
				pod.Namespace = namespace
				*into = append(*into, PodSet{Where: strings.TrimPrefix(where, "."), Pod: pod, Count: count})
				return nil
			}
		}
		if replicas, ok := value["replicas"].(int64); ok && together {
			count = int(replicas)
		}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if err := templates(value[key], where+"."+key, namespace, together, count, into); err != nil {
				return err
			}
		}
	case []any:
		for i, item := range value {
			if err := templates(item, fmt.Sprintf("%s[%d]", where, i), namespace, together, count, into); err != nil {
				return err
			}
		}
	}
	return nil
}
