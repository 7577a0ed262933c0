// SPDX-License-Identifier: Apache-2.0

package laptop

import (
	"context"
	"net"
	"net/http"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/internal/platform/domain"
	"diwan.dev/diwan/internal/platform/node"
	"diwan.dev/diwan/internal/platform/node/image"
	"diwan.dev/diwan/observation"
)

// Wing is a domain on a laptop: the domain itself and its laptop-only additions.
// Everything but the name is optional.
type Wing struct {
	// Name is the domain's directory below internal.
	Name string
	// Domain runs in the laptop's operator. Nil: there are no reconcilers.
	Domain *domain.Domain
	// Definitions are CRDs in addition to those in package crd.
	Definitions []*apiextensionsv1.CustomResourceDefinition
	// Objects are installed at startup: namespaces first, the others after all CRDs.
	Objects []client.Object
	// Untracked are resources created by controllers, which no user applies: the API
	// server does not track their managed fields.
	Untracked []string
	// Handler wraps the API server's handler, for requests that only a laptop answers.
	Handler func(next http.Handler, kube kubernetes.Interface) http.Handler
	// Scheduling is a scheduler plugin.
	Scheduling *Scheduling
	// Images are built-in entries of the image table.
	Images []image.Entry
	// Observers observe the output of containers.
	Observers node.Observers
	// Decorators adapt containers before they start.
	Decorators []node.Decorator
	// Notice is called when the cluster is ready and returns a message for the user,
	// or "".
	Notice func(ctx context.Context) (string, error)
}

// Lent is what a laptop provides to its wings. The functions work once the cluster
// runs.
type Lent struct {
	// Home is the laptop's home directory.
	Home Home
	// Store is the observation store. Memory means that it is not persistent.
	Store  observation.Store
	Memory bool
	// Owner is the bearer token of the home's owner.
	Owner string
	// Authority is the CA certificate of the cluster's servers, PEM encoded.
	Authority []byte
	// DialService connects to host:port as a Pod would, where host may be a Service's name.
	DialService func(ctx context.Context, address string) (net.Conn, error)
	// DialPod connects to a Pod's address.
	DialPod func(ctx context.Context, network, address string) (net.Conn, error)
}

// Scheduling adds a plugin to the scheduler.
type Scheduling struct {
	// Names are additional names of the scheduler, for schedulerName in Pods.
	Names []string
	// New creates the plugin, before the scheduler's informers start.
	New func(kube kubernetes.Interface, any dynamic.Interface, shared informers.SharedInformerFactory, objects dynamicinformer.DynamicSharedInformerFactory) (*SchedulerPlugin, error)
}

// SchedulerPlugin is a running scheduler plugin.
type SchedulerPlugin struct {
	Name    string
	Factory frameworkruntime.PluginFactory
	// Enable enables the plugin in a profile.
	Enable func(*schedulerapi.KubeSchedulerProfile)
	// Run runs in the background until ctx ends.
	Run func(ctx context.Context, recorder events.EventRecorder)
}
