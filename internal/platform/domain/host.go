// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"diwan.dev/diwan/internal/platform/reconciling"
)

// Host is what a Domain is set up against. The manager's cache and client are the
// domain's own; everything else is shared.
type Host struct {
	ctrl.Manager
	// Direct is a client without a cache.
	Direct client.Client
	// Kinds are the kinds of all domains.
	Kinds []Kind
	// Namespace is where Diwan is installed.
	Namespace string
	// Without names the kinds that are left to other controllers.
	Without []string
	// WebhookClientsKnown means that webhook clients are authenticated: only the API
	// server reaches the handlers.
	WebhookClientsKnown bool
	// Registerer registers Prometheus metrics.
	Registerer prometheus.Registerer

	cache    ctrlcache.Cache
	client   client.Client
	answers  map[string]ctrladmission.HandlerFunc
	requests map[string]http.Handler
	servers  []Server
}

// Server is a server that programs, mostly in Pods, reach through a Service.
type Server struct {
	// Name is the name of the Service's port.
	Name string
	// Service is the Service's name.
	Service types.NamespacedName
	// Port is the Service's port and, on a laptop, the port to listen on.
	Port int32
	// Host, if set, makes a laptop serve TLS with a certificate for this name.
	Host string
	// File, if set, makes a laptop also listen on loopback, for the user's own programs,
	// and write Scheme and address to a file of this name in its home.
	File, Scheme string
	// Serve serves on listeners until ctx ends, and closes them.
	Serve func(ctx context.Context, listeners ...net.Listener) error
}

// GetCache implements cluster.Cluster.
func (h *Host) GetCache() ctrlcache.Cache { return h.cache }

// GetClient implements cluster.Cluster. It reads from the domain's cache.
func (h *Host) GetClient() client.Client { return h.client }

// GetFieldIndexer implements cluster.Cluster.
func (h *Host) GetFieldIndexer() client.FieldIndexer { return h.cache }

// Runs reports whether the kinds with this name in Without are reconciled here.
func (h *Host) Runs(name string) bool { return !slices.Contains(h.Without, name) }

// Events returns a recorder of events for a controller.
func (h *Host) Events(controller string) *reconciling.Events {
	return reconciling.NewEvents(h.GetEventRecorder(controller))
}

// Answer registers the handler of the domain's webhooks with this path.
func (h *Host) Answer(path string, f ctrladmission.HandlerFunc) { h.answers[path] = f }

// Handle registers a handler for other requests to the webhook server, with an
// http.ServeMux pattern.
func (h *Host) Handle(pattern string, handler http.Handler) { h.requests[pattern] = handler }

// Serve registers a server, for the laptop or the operator to run.
func (h *Host) Serve(s Server) { h.servers = append(h.servers, s) }

// ownCache makes the manager start a cache with its own: before any reconciler, and
// also without being the leader.
type ownCache struct{ ctrlcache.Cache }

// GetCache marks this runnable as a cache.
func (c ownCache) GetCache() ctrlcache.Cache { return c.Cache }

// Offer is what a domain registered with its Host.
type Offer struct {
	// Answers are webhook handlers by path.
	Answers map[string]ctrladmission.HandlerFunc
	// Requests are handlers of other requests by pattern.
	Requests map[string]http.Handler
	// Servers are the domain's servers.
	Servers []Server
	// Cache is the domain's own cache.
	Cache ctrlcache.Cache
}

// SetUp sets up a domain with its own cache and client, and returns what it
// registered.
func SetUp(d Domain, shared Host) (*Offer, error) {
	slim := d.Slim
	if slim == nil {
		slim = ctrlcache.TransformStripManagedFields()
	}
	h := &shared
	h.answers, h.requests, h.servers = map[string]ctrladmission.HandlerFunc{}, map[string]http.Handler{}, nil
	var err error
	h.cache, err = ctrlcache.New(shared.GetConfig(), ctrlcache.Options{
		Scheme: shared.GetScheme(), Mapper: shared.GetRESTMapper(), HTTPClient: shared.GetHTTPClient(),
		DefaultTransform: slim, ByObject: d.Cache,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot make the cache of %s: %w", d.Name, err)
	}
	h.client, err = client.New(shared.GetConfig(), client.Options{
		Scheme: shared.GetScheme(), Mapper: shared.GetRESTMapper(), HTTPClient: shared.GetHTTPClient(),
		Cache: &client.CacheOptions{Reader: h.cache},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot make the client of %s: %w", d.Name, err)
	}
	if err := shared.Manager.Add(ownCache{h.cache}); err != nil {
		return nil, fmt.Errorf("cannot add the cache of %s: %w", d.Name, err)
	}
	if err := d.SetUp(h); err != nil {
		return nil, fmt.Errorf("cannot set up %s: %w", d.Name, err)
	}
	if err := d.answered(h.answers); err != nil {
		return nil, err
	}
	return &Offer{Answers: h.answers, Requests: h.requests, Servers: h.servers, Cache: h.cache}, nil
}

// answered returns an error for a webhook without a handler, or a handler without a
// webhook.
func (d Domain) answered(answers map[string]ctrladmission.HandlerFunc) error {
	asked := map[string]bool{}
	for _, w := range d.Webhooks {
		asked[w.Path] = true
		if answers[w.Path] == nil {
			return fmt.Errorf("cannot set up %s: nothing answers webhook %s at %s", d.Name, w.Name, w.Path)
		}
	}
	for path := range answers {
		if !asked[path] {
			return fmt.Errorf("cannot set up %s: %s is answered, but no webhook asks there", d.Name, path)
		}
	}
	return nil
}
