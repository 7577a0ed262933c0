// SPDX-License-Identifier: Apache-2.0

package metricsapi

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/metrics/pkg/apis/metrics"
	"k8s.io/metrics/pkg/apis/metrics/install"
	v1 "k8s.io/metrics/pkg/apis/metrics/v1"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

// API is the API group. It answers once it has a meter.
type API struct{ meter atomic.Pointer[Meter] }

// Serve has the API answer with what m measures.
func (a *API) Serve(m *Meter) { a.meter.Store(m) }

// Group is the API group for an API server.
func (a *API) Group() *genericapiserver.APIGroupInfo {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
	group := genericapiserver.NewDefaultAPIGroupInfo(metrics.GroupName, scheme, runtime.NewParameterCodec(scheme), serializer.NewCodecFactory(scheme))
	resources := map[string]rest.Storage{
		"pods":  pods{a, rest.NewDefaultTableConvertor(v1.Resource("pods"))},
		"nodes": nodes{a, rest.NewDefaultTableConvertor(v1.Resource("nodes"))},
	}
	for _, version := range []string{v1.SchemeGroupVersion.Version, v1beta1.SchemeGroupVersion.Version} {
		group.VersionedResourcesStorageMap[version] = resources
	}
	return &group
}

// read asks the meter.
func (a *API) read(ctx context.Context) (*Meter, *reading, error) {
	m := a.meter.Load()
	if m == nil {
		return nil, nil, apierrors.NewServiceUnavailable("cannot report usage: the node is not ready yet")
	}
	r, err := m.read(ctx)
	return m, r, err
}

// selected reports whether an object is one that a list asks for.
func selected(o *internalversion.ListOptions, meta metav1.ObjectMeta) bool {
	if o == nil {
		return true
	}
	return (o.LabelSelector == nil || o.LabelSelector.Matches(labels.Set(meta.Labels))) &&
		(o.FieldSelector == nil || o.FieldSelector.Matches(fields.Set{"metadata.name": meta.Name, "metadata.namespace": meta.Namespace}))
}

// pods are the PodMetrics.
type pods struct {
	api *API
	rest.TableConvertor
}

var (
	_ rest.Getter               = pods{}
	_ rest.Lister               = pods{}
	_ rest.Scoper               = pods{}
	_ rest.KindProvider         = pods{}
	_ rest.SingularNameProvider = pods{}
)

// New implements rest.Storage.
func (pods) New() runtime.Object { return &metrics.PodMetrics{} }

// NewList implements rest.Lister.
func (pods) NewList() runtime.Object { return &metrics.PodMetricsList{} }

// Destroy implements rest.Storage.
func (pods) Destroy() {}

// Kind implements rest.KindProvider.
func (pods) Kind() string { return "PodMetrics" }

// NamespaceScoped implements rest.Scoper.
func (pods) NamespaceScoped() bool { return true }

// GetSingularName implements rest.SingularNameProvider. It is none: "pod" is core's.
func (pods) GetSingularName() string { return "" }

// List implements rest.Lister.
func (s pods) List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	m, r, err := s.api.read(ctx)
	if err != nil {
		return nil, err
	}
	namespace := genericrequest.NamespaceValue(ctx)
	list := &metrics.PodMetricsList{Items: []metrics.PodMetrics{}}
	for _, pod := range m.source.Pods() {
		if namespace != "" && pod.Namespace != namespace {
			continue
		}
		if item := r.pod(pod); len(item.Containers) > 0 && selected(options, item.ObjectMeta) {
			list.Items = append(list.Items, item)
		}
	}
	slices.SortFunc(list.Items, func(a, b metrics.PodMetrics) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return list, nil
}

// Get implements rest.Getter.
func (s pods) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	m, r, err := s.api.read(ctx)
	if err != nil {
		return nil, err
	}
	namespace := genericrequest.NamespaceValue(ctx)
	for _, pod := range m.source.Pods() {
		if pod.Name != name || pod.Namespace != namespace {
			continue
		}
		if item := r.pod(pod); len(item.Containers) > 0 {
			return &item, nil
		}
	}
	return nil, apierrors.NewNotFound(v1.Resource("pods"), name)
}

// pod is what a Pod's containers use.
func (r *reading) pod(pod *corev1.Pod) metrics.PodMetrics {
	item := metrics.PodMetrics{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, Labels: pod.Labels, CreationTimestamp: metav1.NewTime(r.at)},
		Timestamp:  metav1.NewTime(r.at), Window: metav1.Duration{Duration: r.window},
	}
	add := func(name string) {
		if used, ok := r.containers[key{pod.Namespace, pod.Name, name}]; ok {
			item.Containers = append(item.Containers, metrics.ContainerMetrics{Name: name, Usage: used})
		}
	}
	for _, c := range pod.Spec.InitContainers {
		add(c.Name)
	}
	for _, c := range pod.Spec.Containers {
		add(c.Name)
	}
	for _, c := range pod.Spec.EphemeralContainers {
		add(c.Name)
	}
	return item
}

// nodes are the NodeMetrics.
type nodes struct {
	api *API
	rest.TableConvertor
}

var (
	_ rest.Getter               = nodes{}
	_ rest.Lister               = nodes{}
	_ rest.Scoper               = nodes{}
	_ rest.KindProvider         = nodes{}
	_ rest.SingularNameProvider = nodes{}
)

// New implements rest.Storage.
func (nodes) New() runtime.Object { return &metrics.NodeMetrics{} }

// NewList implements rest.Lister.
func (nodes) NewList() runtime.Object { return &metrics.NodeMetricsList{} }

// Destroy implements rest.Storage.
func (nodes) Destroy() {}

// Kind implements rest.KindProvider.
func (nodes) Kind() string { return "NodeMetrics" }

// NamespaceScoped implements rest.Scoper.
func (nodes) NamespaceScoped() bool { return false }

// GetSingularName implements rest.SingularNameProvider. It is none: "node" is core's.
func (nodes) GetSingularName() string { return "" }

// List implements rest.Lister.
func (s nodes) List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	m, r, err := s.api.read(ctx)
	if err != nil {
		return nil, err
	}
	list := &metrics.NodeMetricsList{Items: []metrics.NodeMetrics{}}
	if item := r.node(m.node); selected(options, item.ObjectMeta) {
		list.Items = append(list.Items, item)
	}
	return list, nil
}

// Get implements rest.Getter.
func (s nodes) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	m, r, err := s.api.read(ctx)
	if err != nil {
		return nil, err
	}
	if name != m.node {
		return nil, apierrors.NewNotFound(v1.Resource("nodes"), name)
	}
	item := r.node(name)
	return &item, nil
}

// node is what the machine uses.
func (r *reading) node(name string) metrics.NodeMetrics {
	return metrics.NodeMetrics{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}, CreationTimestamp: metav1.NewTime(r.at)},
		Timestamp:  metav1.NewTime(r.at), Window: metav1.Duration{Duration: r.window}, Usage: r.machine,
	}
}
