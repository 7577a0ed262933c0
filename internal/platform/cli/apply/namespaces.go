// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"diwan.dev/diwan/internal/platform/typo"
)

// namespaces is the resource of Namespaces.
func (a *Applier) namespaces() dynamic.ResourceInterface {
	return a.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
}

// ensureNamespace creates a namespace if requested, and reports it: its name may be a typo.
func (a *Applier) ensureNamespace(ctx context.Context, name string) error {
	if !a.config.CreateNamespaces || a.created[name] {
		return nil
	}
	namespace := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name},
	}}
	_, err := a.namespaces().Create(ctx, namespace, metav1.CreateOptions{FieldManager: FieldManager})
	switch {
	case err == nil:
		a.config.Tell(fmt.Sprintf("created namespace %s, which did not exist%s", name, typo.DidYouMean(a.similarNamespace(ctx, name))))
	case !apierrors.IsAlreadyExists(err):
		return fmt.Errorf("cannot create namespace %s: %w", name, err)
	}
	a.created[name] = true
	return nil
}

// similarNamespace is a namespace of users whose name is close to another, "" without one.
func (a *Applier) similarNamespace(ctx context.Context, name string) string {
	list, err := a.namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return "" // it is only a hint
	}
	var names []string
	for i := range list.Items {
		if other := list.Items[i].GetName(); !strings.HasPrefix(other, "kube-") {
			names = append(names, other)
		}
	}
	return typo.Nearest(name, names)
}
