// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"diwan.dev/diwan/internal/platform/cli/apply"
	"diwan.dev/diwan/internal/platform/cli/manifest"
	"diwan.dev/diwan/internal/platform/node"
)

// Config says against what manifests are checked.
type Config struct {
	// Cluster is the way into the cluster.
	Cluster *rest.Config
	// Namespace is the namespace of objects that specify none.
	Namespace string
	// CreatesNamespaces says that namespaces that are missing will be created.
	CreatesNamespaces bool
	// Kinds are what is known of kinds whose Pods are not just those of their templates, and Scheme has the
	// Go types of what these read.
	Kinds  Kinds
	Scheme *runtime.Scheme
	// Forecast is the node of this machine; nil where Pods run elsewhere.
	Forecast *node.Forecast
}

// Result is the result for one object.
type Result struct {
	Object manifest.Object
	// Lacks are reasons why it cannot run, and what to do.
	Lacks []string
	// Notes are what a user may want to know even if it runs, such as warnings of the API
	// server.
	Notes []string
}

// Checker checks objects against one cluster.
type Checker struct {
	config   Config
	client   dynamic.Interface
	mapper   meta.RESTMapper
	warnings *warnings
	nodes    []corev1.Node
	given    given
}

// New returns a checker.
func New(config Config) (*Checker, error) {
	w := &warnings{}
	cluster := rest.CopyConfig(config.Cluster)
	cluster.WarningHandler = w
	httpClient, err := rest.HTTPClientFor(cluster)
	if err != nil {
		return nil, fmt.Errorf("cannot create a client: %w", err)
	}
	client, err := dynamic.NewForConfigAndClient(cluster, httpClient)
	if err != nil {
		return nil, fmt.Errorf("cannot create a client: %w", err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(cluster, httpClient)
	if err != nil {
		return nil, fmt.Errorf("cannot create a client: %w", err)
	}
	config.Namespace = cmp.Or(config.Namespace, metav1.NamespaceDefault)
	return &Checker{config: config, client: client, mapper: mapper, warnings: w}, nil
}

// warnings collects the warnings of the API server's responses.
type warnings struct{ texts []string }

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(code int, _, text string) {
	if code == 299 && !slices.Contains(w.texts, text) {
		w.texts = append(w.texts, text)
	}
}

// take returns what was collected since the last call.
func (w *warnings) take() []string {
	texts := w.texts
	w.texts = nil
	return texts
}

// Check checks the objects, which count as there for each other. It changes nothing.
func (c *Checker) Check(ctx context.Context, objects []manifest.Object) ([]Result, error) {
	if err := c.listNodes(ctx); err != nil {
		return nil, err
	}
	for _, object := range objects {
		if object.GetNamespace() == "" {
			if mapping, err := c.mapping(object); err != nil || mapping.Scope.Name() == meta.RESTScopeNameNamespace {
				object.SetNamespace(c.config.Namespace)
			}
		}
	}
	c.given = givenBy(objects, func(object manifest.Object) bool {
		mapping, err := c.mapping(object)
		return err == nil && mapping.Scope.Name() == meta.RESTScopeNameRoot
	})
	var results []Result
	for _, object := range objects {
		result, err := c.one(ctx, object)
		if err != nil {
			return nil, fmt.Errorf("cannot check %s %s: %w", object.GetKind(), nameOf(object), err)
		}
		results = append(results, result)
	}
	return results, nil
}

// listNodes reads the nodes that there are. That of this machine comes last when its cluster starts,
// and is waited for.
func (c *Checker) listNodes(ctx context.Context) error {
	return wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		list, err := c.resource("nodes").List(ctx, metav1.ListOptions{})
		if apierrors.IsForbidden(err) { // a tenant: what fits is not checked
			return true, nil
		}
		if err != nil {
			return false, fmt.Errorf("cannot list nodes: %w", err)
		}
		nodes := &corev1.NodeList{}
		if err := Convert(&unstructured.Unstructured{Object: list.UnstructuredContent()}, nodes); err != nil {
			return false, fmt.Errorf("cannot read nodes: %w", err)
		}
		c.nodes = nodes.Items
		known := func(n corev1.Node) bool { return len(n.Status.Allocatable) > 0 }
		return slices.ContainsFunc(c.nodes, known) || c.config.Forecast == nil, nil
	})
}

// nameOf is an object's name, or the beginning of one that it will be given.
func nameOf(object manifest.Object) string {
	return cmp.Or(object.GetName(), object.GetGenerateName()+"…")
}

func (c *Checker) mapping(object manifest.Object) (*meta.RESTMapping, error) {
	gvk := object.GroupVersionKind()
	return c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
}

// resource is one of the core group.
func (c *Checker) resource(name string) dynamic.NamespaceableResourceInterface {
	return c.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: name})
}

// one checks one object.
func (c *Checker) one(ctx context.Context, object manifest.Object) (Result, error) {
	result := Result{Object: object}
	mapping, err := c.mapping(object)
	switch {
	case meta.IsNoMatchError(err) && c.given.kind(object.GroupVersionKind().GroupKind()):
		result.Notes = append(result.Notes, "its kind is new and cannot be checked before its CustomResourceDefinition is installed")
		return result, nil
	case meta.IsNoMatchError(err):
		result.Lacks = append(result.Lacks, fmt.Sprintf("the cluster has no kind %s in apiVersion %s; add its CustomResourceDefinition to the files", object.GetKind(), object.GetAPIVersion()))
		return result, nil
	case err != nil:
		return result, err
	}
	namespace, note, err := c.namespace(ctx, object.GetNamespace())
	if err != nil {
		return result, err
	}
	if note != "" && c.config.CreatesNamespaces {
		result.Notes = append(result.Notes, note)
	} else if note != "" {
		result.Lacks = append(result.Lacks, note)
	}
	defaulted, err := c.dryRun(ctx, mapping, object, namespace)
	var rejection *rejection
	switch {
	case errors.As(err, &rejection):
		result.Lacks = append(result.Lacks, rejection.causes...)
		if object.GetName() != "" && c.exists(ctx, mapping, object, namespace) {
			result.Lacks = append(result.Lacks, "it already exists with different content: change metadata.name, or start over with `diwan run --restart`")
		}
		defaulted = object.Unstructured
	case err != nil:
		return result, err
	}
	for _, text := range c.warnings.take() {
		if strings.Contains(text, "unknown field") { // it would be dropped, and was written for a purpose
			result.Lacks = append(result.Lacks, text)
		} else {
			result.Notes = append(result.Notes, "warning: "+text)
		}
	}
	defaulted.SetNamespace(object.GetNamespace())
	pods, err := c.config.Kinds.PodsOf(ctx, defaulted, reader{c})
	if err != nil {
		if rejection == nil { // else it was said why
			result.Lacks = append(result.Lacks, err.Error())
		}
		return result, nil
	}
	err = c.pods(ctx, &result, pods, namespace)
	result.Notes = slices.DeleteFunc(result.Notes, func(note string) bool { // the laptop's API server warns of the same
		return slices.Contains(result.Lacks, strings.TrimPrefix(note, "warning: "))
	})
	return result, err
}

// namespace returns an existing namespace for dry runs of a namespace's objects, and a note if it
// is a different one.
func (c *Checker) namespace(ctx context.Context, name string) (existing, note string, err error) {
	if name == "" {
		return "", "", nil
	}
	_, err = c.resource("namespaces").Get(ctx, name, metav1.GetOptions{})
	switch {
	case err == nil, apierrors.IsForbidden(err):
		return name, "", nil
	case !apierrors.IsNotFound(err):
		return "", "", err
	case c.given.has("Namespace", "", name):
		return metav1.NamespaceDefault, "", nil
	case c.config.CreatesNamespaces:
		return metav1.NamespaceDefault, fmt.Sprintf("namespace %s does not exist; `diwan run` creates it", name), nil
	}
	return metav1.NamespaceDefault, fmt.Sprintf("namespace %s does not exist: diwan kubectl create namespace %s", name, name), nil
}

// exists reports whether the cluster has an object.
func (c *Checker) exists(ctx context.Context, mapping *meta.RESTMapping, object manifest.Object, namespace string) bool {
	var resource dynamic.ResourceInterface = c.client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		resource = c.client.Resource(mapping.Resource).Namespace(namespace)
	}
	_, err := resource.Get(ctx, object.GetName(), metav1.GetOptions{})
	return err == nil
}

// rejection is the API server's objections.
type rejection struct{ causes []string }

func (r *rejection) Error() string { return strings.Join(r.causes, "; ") }

// notTyped begins the error of an apply with unknown fields or values of a wrong type. It comes as a
// fault of the server's; a creation with the same content is rejected in words.
const notTyped = "failed to create typed patch object"

// dryRun returns an object as the API server would store it, or a *rejection.
func (c *Checker) dryRun(ctx context.Context, mapping *meta.RESTMapping, object manifest.Object, namespace string) (*unstructured.Unstructured, error) {
	if c.given.needed(c.config.Kinds, object.Unstructured) {
		return object.DeepCopy(), nil // the API server would miss what it refers to
	}
	tried := object.DeepCopy()
	var resource dynamic.ResourceInterface = c.client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		tried.SetNamespace(namespace)
		resource = c.client.Resource(mapping.Resource).Namespace(namespace)
	}
	create := func() (*unstructured.Unstructured, error) {
		return resource.Create(ctx, tried, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: apply.FieldManager, FieldValidation: metav1.FieldValidationStrict})
	}
	var err error
	var stored *unstructured.Unstructured
	if tried.GetName() == "" {
		stored, err = create()
	} else {
		var text []byte
		if text, err = json.Marshal(tried); err != nil {
			return nil, err
		}
		stored, err = resource.Patch(ctx, tried.GetName(), types.ApplyPatchType, text, metav1.PatchOptions{
			DryRun: []string{metav1.DryRunAll}, FieldManager: apply.FieldManager, FieldValidation: metav1.FieldValidationStrict, Force: ptr.To(true),
		})
		if err != nil && strings.HasPrefix(err.Error(), notTyped) {
			stored, err = create()
		}
	}
	if err == nil {
		return stored, nil
	}
	return nil, rejectionOf(object.GroupVersionKind(), err)
}

// rejectionOf returns a *rejection for an error with which the API server rejects an object.
func rejectionOf(gvk schema.GroupVersionKind, err error) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code < 400 || status.Status().Code >= 500 || apierrors.IsUnauthorized(err) || apierrors.IsTooManyRequests(err) {
		return err
	}
	return &rejection{apply.Causes(gvk, err)}
}

// pods checks what would run.
func (c *Checker) pods(ctx context.Context, result *Result, pods []PodSet, namespace string) error {
	for i := range pods {
		set := &pods[i]
		lack := func(texts ...string) {
			for _, text := range texts {
				if text = at(set.Where, text); !slices.Contains(result.Lacks, text) {
					result.Lacks = append(result.Lacks, text)
				}
			}
		}
		missing, err := c.missing(ctx, set)
		if err != nil {
			return err
		}
		lack(missing...)
		if c.config.Forecast != nil {
			if set.Pod.Annotations[node.AnnotationWorkingDirectory] == "" {
				set.Pod.Annotations = map[string]string{node.AnnotationWorkingDirectory: result.Object.Source.Dir}
			}
			lack(containersLack(c.config.Forecast, set.Pod)...)
		}
		if result.Object.GetKind() != "Pod" {
			if err := c.tryPod(ctx, set, namespace, lack); err != nil {
				return err
			}
		}
	}
	if len(c.nodes) > 0 {
		result.Lacks = append(result.Lacks, capacityLacks(pods, c.nodes)...)
	}
	return nil
}

// tryPod has the API server admit a Pod without creating it, and takes over its defaults.
func (c *Checker) tryPod(ctx context.Context, set *PodSet, namespace string, lack func(...string)) error {
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, Spec: *set.Pod.Spec.DeepCopy()}
	pod.GenerateName, pod.Namespace = "check-", namespace
	pod.Spec.ServiceAccountName, pod.Spec.DeprecatedServiceAccount = "", "" // was looked for
	if pod.Spec.RestartPolicy == "" {
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	}
	content, err := toUnstructured(pod)
	if err != nil {
		return err
	}
	stored, err := c.resource("pods").Namespace(namespace).Create(ctx, content, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	c.warnings.take() // those of a Pod's template came with the object
	if err != nil {
		var rejection *rejection
		switch {
		case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot create resource"): // its controller may
			return nil
		case errors.As(rejectionOf(pod.GroupVersionKind(), err), &rejection):
			lack(rejection.causes...)
			return nil
		}
		return err
	}
	admitted := &corev1.Pod{}
	if err := Convert(stored, admitted); err != nil {
		return err
	}
	set.Pod.Spec = admitted.Spec
	return nil
}
