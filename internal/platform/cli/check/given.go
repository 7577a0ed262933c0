// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"diwan.dev/diwan/internal/platform/cli/manifest"
)

// given are the objects that are checked, by kind, namespace and name: they count as there.
type given map[[3]string]*unstructured.Unstructured

// givenBy are objects. clusterScoped reports whether one belongs to no namespace, whatever it says.
func givenBy(objects []manifest.Object, clusterScoped func(manifest.Object) bool) given {
	g := given{}
	for _, o := range objects {
		namespace := o.GetNamespace()
		if clusterScoped(o) {
			namespace = ""
		}
		g[[3]string{o.GetKind(), namespace, o.GetName()}] = o.Unstructured
	}
	return g
}

func (g given) has(kind, namespace, name string) bool {
	return g[[3]string{kind, namespace, name}] != nil
}

// kind reports whether a CustomResourceDefinition of a kind is given.
func (g given) kind(wanted schema.GroupKind) bool {
	for key, o := range g {
		if key[0] != "CustomResourceDefinition" {
			continue
		}
		group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
		if group == wanted.Group && kind == wanted.Kind {
			return true
		}
	}
	return false
}

// needed reports whether an object refers to a given one that the API server looks at to admit it.
func (g given) needed(kinds Kinds, object *unstructured.Unstructured) bool {
	needs := kinds.named(object.GroupVersionKind()).Needs
	return needs != nil && slices.ContainsFunc(needs(object), func(r Reference) bool { return g.has(r.Kind, r.Namespace, r.Name) })
}

// get reads an object, among those that are given first. Its error is NotFound where it is missing.
func (c *Checker) get(ctx context.Context, kind, resource, namespace, name string) (*unstructured.Unstructured, error) {
	if o := c.given[[3]string{kind, namespace, name}]; o != nil {
		return o, nil
	}
	return c.resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
}

// reader reads objects of Go types, among those that are given first. Its error is NotFound also where
// the cluster does not know the kind.
type reader struct{ *Checker }

// Get implements client.Reader.
func (r reader) Get(ctx context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	gvk, err := apiutil.GVKForObject(into, r.config.Scheme)
	if err != nil {
		return err
	}
	found := r.given[[3]string{gvk.Kind, key.Namespace, key.Name}]
	if found == nil {
		mapping, err := r.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if meta.IsNoMatchError(err) {
			return apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, key.Name)
		}
		if err != nil {
			return err
		}
		if found, err = r.client.Resource(mapping.Resource).Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{}); err != nil {
			return err
		}
	}
	return Convert(found, into)
}

// List implements client.Reader. Nothing here lists.
func (reader) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.ErrUnsupported
}

// reference is an object of the Pod's namespace that a Pod needs to start.
type reference struct {
	kind, resource, name string
	key                  string // that must be in a ConfigMap or Secret; "" for none
}

func configMap(name, key string) reference { return reference{"ConfigMap", "configmaps", name, key} }
func secret(name, key string) reference    { return reference{"Secret", "secrets", name, key} }

// references are the objects that a Pod needs, without optional ones.
func references(pod *corev1.Pod) []reference {
	var all []reference
	if name := pod.Spec.ServiceAccountName; name != "" && name != "default" {
		all = append(all, reference{"ServiceAccount", "serviceaccounts", name, ""})
	}
	need := func(optional *bool, r reference) {
		if !ptr.Deref(optional, false) {
			all = append(all, r)
		}
	}
	keys := func(optional *bool, items []corev1.KeyToPath, r func(key string) reference) {
		need(optional, r(""))
		for _, item := range items {
			need(optional, r(item.Key))
		}
	}
	for _, v := range pod.Spec.Volumes {
		switch {
		case v.ConfigMap != nil:
			keys(v.ConfigMap.Optional, v.ConfigMap.Items, func(key string) reference { return configMap(v.ConfigMap.Name, key) })
		case v.Secret != nil:
			keys(v.Secret.Optional, v.Secret.Items, func(key string) reference { return secret(v.Secret.SecretName, key) })
		case v.PersistentVolumeClaim != nil:
			all = append(all, reference{"PersistentVolumeClaim", "persistentvolumeclaims", v.PersistentVolumeClaim.ClaimName, ""})
		case v.Projected != nil:
			for _, s := range v.Projected.Sources {
				if s.ConfigMap != nil {
					keys(s.ConfigMap.Optional, s.ConfigMap.Items, func(key string) reference { return configMap(s.ConfigMap.Name, key) })
				}
				if s.Secret != nil {
					keys(s.Secret.Optional, s.Secret.Items, func(key string) reference { return secret(s.Secret.Name, key) })
				}
			}
		}
	}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for _, from := range c.EnvFrom {
			if from.ConfigMapRef != nil {
				need(from.ConfigMapRef.Optional, configMap(from.ConfigMapRef.Name, ""))
			}
			if from.SecretRef != nil {
				need(from.SecretRef.Optional, secret(from.SecretRef.Name, ""))
			}
		}
		for _, v := range c.Env {
			if v.ValueFrom == nil {
				continue
			}
			if r := v.ValueFrom.ConfigMapKeyRef; r != nil {
				need(r.Optional, configMap(r.Name, r.Key))
			}
			if r := v.ValueFrom.SecretKeyRef; r != nil {
				need(r.Optional, secret(r.Name, r.Key))
			}
		}
	}
	return all
}

// missing says which objects that a Pod needs do not exist.
func (c *Checker) missing(ctx context.Context, set *PodSet) ([]string, error) {
	var lacks []string
	pod := set.Pod
	for _, r := range references(pod) {
		if slices.Contains(set.Made, r.name) {
			continue
		}
		object, err := c.get(ctx, r.kind, r.resource, pod.Namespace, r.name)
		switch {
		case apierrors.IsForbidden(err): // who may not read it cannot know
		case apierrors.IsNotFound(err):
			lacks = append(lacks, fmt.Sprintf("%s %s does not exist in namespace %s: create it first, or add it to the files", r.kind, r.name, pod.Namespace))
		case err != nil:
			return nil, fmt.Errorf("cannot read %s %s: %w", r.kind, r.name, err)
		case r.key != "" && !hasKey(object, r.key):
			lacks = append(lacks, fmt.Sprintf("%s %s in namespace %s has no key %s", r.kind, r.name, pod.Namespace, r.key))
		}
	}
	slices.Sort(lacks)
	return slices.Compact(lacks), nil
}

func hasKey(object *unstructured.Unstructured, key string) bool {
	for _, field := range []string{"data", "stringData", "binaryData"} {
		if data, _, _ := unstructured.NestedMap(object.Object, field); data[key] != nil {
			return true
		}
	}
	return false
}

func toUnstructured(object any) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	return &unstructured.Unstructured{Object: content}, err
}
