// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"diwan.dev/diwan/internal/platform/cli/manifest"
)

// FieldManager is the name under which fields are owned.
const FieldManager = "diwan-run"

// Config configures an Applier.
type Config struct {
	// Namespace is the namespace of objects that specify none; "" is "default". If Explicit, an
	// object with another namespace is an error.
	Namespace string
	Explicit  bool
	// CreateNamespaces makes the namespaces that objects name where they are missing.
	CreateNamespaces bool
	// Tell is called with what a user should know before anything starts: each warning of the API
	// server once, and which namespaces were created.
	Tell func(text string)
}

// Applier applies objects to one cluster.
type Applier struct {
	config  Config
	client  dynamic.Interface
	mapper  meta.RESTMapper
	created map[string]bool // namespaces known to exist
	warned  *warnings
}

// New returns an applier to the cluster that to is the way into.
func New(to *rest.Config, config Config) (*Applier, error) {
	warned := &warnings{tell: config.Tell, told: sets.New[string]()}
	to = rest.CopyConfig(to)
	to.WarningHandlerWithContext = warned
	httpClient, err := rest.HTTPClientFor(to)
	if err != nil {
		return nil, fmt.Errorf("cannot create a client: %w", err)
	}
	client, err := dynamic.NewForConfigAndClient(to, httpClient)
	if err != nil {
		return nil, fmt.Errorf("cannot create a client: %w", err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(to, httpClient)
	if err != nil {
		return nil, fmt.Errorf("cannot create a client: %w", err)
	}
	config.Namespace = cmp.Or(config.Namespace, metav1.NamespaceDefault)
	return &Applier{config: config, client: client, mapper: mapper, created: map[string]bool{metav1.NamespaceDefault: true}, warned: warned}, nil
}

// Applied is an object as the cluster has it after it was applied.
type Applied struct {
	*unstructured.Unstructured
	// Source is where it was written.
	Source manifest.Source
	// Created is whether it did not exist before.
	Created bool
}

// Apply applies the objects and returns them in the order in which that was done. It stops at the
// first that fails, with an [*Error]; those before it are returned.
func (a *Applier) Apply(ctx context.Context, objects []manifest.Object) ([]Applied, error) {
	objects = slices.Clone(objects)
	slices.SortStableFunc(objects, func(x, y manifest.Object) int { return cmp.Compare(rank(x), rank(y)) })
	var done []Applied
	for _, object := range objects {
		applied, created, err := a.one(ctx, object)
		if err != nil {
			return done, a.explain(ctx, object, !created, err)
		}
		done = append(done, Applied{Unstructured: applied, Source: object.Source, Created: created})
	}
	return done, nil
}

// rank orders objects that others need before the others.
func rank(object manifest.Object) int {
	switch object.GroupVersionKind().GroupKind().String() {
	case "Namespace":
		return 0
	case "CustomResourceDefinition.apiextensions.k8s.io":
		return 1
	}
	return 2
}

// one applies one object and reports whether that created it, or would have.
func (a *Applier) one(ctx context.Context, object manifest.Object) (applied *unstructured.Unstructured, created bool, err error) {
	resource, namespace, err := a.resource(object)
	if err == nil && namespace != "" {
		err = a.ensureNamespace(ctx, namespace)
	}
	if err != nil {
		return nil, true, err
	}
	ctx = about(ctx, object)
	if object.GetName() == "" {
		applied, err = resource.Create(ctx, object.Unstructured, metav1.CreateOptions{FieldManager: FieldManager, FieldValidation: metav1.FieldValidationStrict})
		return applied, true, err
	}
	_, err = resource.Get(ctx, object.GetName(), metav1.GetOptions{})
	if created = apierrors.IsNotFound(err); err != nil && !created {
		return nil, true, err
	}
	text, err := json.Marshal(object.Unstructured)
	if err != nil {
		return nil, true, err
	}
	applied, err = resource.Patch(ctx, object.GetName(), types.ApplyPatchType, text, metav1.PatchOptions{
		FieldManager: FieldManager, Force: ptr.To(true), FieldValidation: metav1.FieldValidationStrict,
	})
	if err == nil && rank(object) == 1 {
		err = a.waitEstablished(ctx, resource, object.GetName())
	}
	return applied, created, err
}

// resource finds where objects of the kind live, and in which namespace, if in one; it gives the object that.
func (a *Applier) resource(object manifest.Object) (in dynamic.ResourceInterface, namespace string, err error) {
	gvk := object.GroupVersionKind()
	mapping, err := a.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, "", err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return a.client.Resource(mapping.Resource), "", nil
	}
	namespace = object.GetNamespace()
	if namespace == "" {
		namespace = a.config.Namespace
		object.SetNamespace(namespace)
	}
	if a.config.Explicit && namespace != a.config.Namespace {
		return nil, "", &namespaceError{written: namespace, asked: a.config.Namespace}
	}
	return a.client.Resource(mapping.Resource).Namespace(namespace), namespace, nil
}

// establishTimeout bounds the wait for the API of a new CustomResourceDefinition.
const establishTimeout = 30 * time.Second

// waitEstablished waits until the API server serves a new kind.
func (a *Applier) waitEstablished(ctx context.Context, resource dynamic.ResourceInterface, name string) error {
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, establishTimeout, true, func(ctx context.Context) (bool, error) {
		crd, err := resource.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
		return slices.ContainsFunc(conditions, func(c any) bool {
			condition, ok := c.(map[string]any)
			return ok && condition["type"] == "Established" && condition["status"] == "True"
		}), nil
	})
	if err != nil {
		return fmt.Errorf("the API server does not serve its kind: %w", err)
	}
	return nil
}

// Delete deletes the objects that exist under the names of the manifest's, and waits until they
// are gone together with what they own.
func (a *Applier) Delete(ctx context.Context, objects []manifest.Object) error {
	for _, object := range objects {
		if object.GetName() == "" {
			continue
		}
		if err := a.delete(ctx, object); err != nil {
			return a.explain(ctx, object, false, err)
		}
	}
	return nil
}

func (a *Applier) delete(ctx context.Context, object manifest.Object) error {
	resource, _, err := a.resource(object)
	if err != nil {
		return err
	}
	err = resource.Delete(ctx, object.GetName(), metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_, err := resource.Get(ctx, object.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
}
