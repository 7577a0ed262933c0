// SPDX-License-Identifier: Apache-2.0

// Package operator runs the reconcilers and webhooks of domains against a Kubernetes
// API.
//
// The local cluster runs an Operator in its own process, `diwan operator`
// runs one on a user's cluster; it is the same code, and it does not know
// which of the two it is in. What differs is in Config: the credentials, the
// domains, and where the webhooks listen.
package operator

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"diwan.dev/diwan/internal/platform/admission"
	"diwan.dev/diwan/internal/platform/deadnode"
	"diwan.dev/diwan/internal/platform/domain"
	"diwan.dev/diwan/internal/platform/reconciling"
)

// DefaultNamespace is where Katib is, and Diwan unless it is installed elsewhere.
const DefaultNamespace = "kubeflow"

// Config says with what an Operator works.
type Config struct {
	// REST are the credentials. Required.
	REST *rest.Config
	// Domains are what the Operator runs, with their reconcilers. Package diwan lists
	// them.
	Domains []domain.Domain
	// Namespace is where Diwan is installed. Default [DefaultNamespace].
	Namespace string
	// Webhooks accepts the API server's questions, with TLS done. The Operator
	// closes it. Nil: this Operator answers none.
	Webhooks net.Listener
	// WebhookClientsKnown says that Webhooks verifies the certificates of clients by
	// [admission.VerifyClients]; only the API server, which has one, gets answers
	// then. Default: anyone does, to what depends on nothing that is confidential.
	WebhookClientsKnown bool
	// Drain is for how long the end of the webhooks is announced: each answer has its
	// client close the connection, so that no question is on its way to one that is
	// closed here. Default: they end at once.
	Drain time.Duration
	// MetricsAddress serves Prometheus metrics, host:port. "0", the default,
	// serves none.
	MetricsAddress string
	// MetricsCertificate, if set, has metrics served by HTTPS, to those whom
	// RBAC lets get the path /metrics, known by their bearer tokens.
	MetricsCertificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// ProbeAddress serves /healthz and /readyz. "0", the default, serves none.
	ProbeAddress string
	// Ready says why the Operator is not ready, beside its own reasons. Nil:
	// there are none.
	Ready func() error
	// LeaderElection lets one of several Operators work at a time, by a Lease
	// in LeaderNamespace. Default off.
	LeaderElection  bool
	LeaderNamespace string
	// LeaseDuration is how long a leader that has died is waited for, at least
	// a second. Default 15 s. A leader that cannot renew for two thirds of it
	// ends.
	LeaseDuration time.Duration
	// Without names the kinds that this Operator leaves to the controllers that
	// the cluster has for them, as their domains call them. Default: none.
	Without []string
}

// DefaultConfig is the configuration of a single Operator without webhooks.
func DefaultConfig(config *rest.Config, domains ...domain.Domain) Config {
	return Config{REST: config, Domains: domains, Namespace: DefaultNamespace, MetricsAddress: "0", ProbeAddress: "0", LeaseDuration: 15 * time.Second}
}

// Operator is the reconcilers and webhooks, ready to run.
type Operator struct {
	manager  ctrl.Manager
	webhooks net.Listener
	drain    time.Duration
	handler  http.Handler
	offers   []*domain.Offer
}

// New puts an Operator together. It reaches the API server to learn its kinds.
func New(cfg Config) (*Operator, error) {
	if err := checkWithout(cfg.Without, cfg.Domains); err != nil {
		return nil, err
	}
	scheme, err := domain.NewScheme(cfg.Domains...)
	if err != nil {
		return nil, err
	}
	manager, err := ctrl.NewManager(cfg.REST, ctrl.Options{
		Scheme:                        scheme,
		Cache:                         cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.Node{}: {Transform: deadnode.Slim}}},
		Metrics:                       metricsOptions(cfg),
		HealthProbeBindAddress:        cfg.ProbeAddress,
		LeaderElection:                cfg.LeaderElection,
		LeaderElectionID:              "diwan-operator",
		LeaderElectionNamespace:       cfg.LeaderNamespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 ptr.To(cfg.LeaseDuration),
		RenewDeadline:                 ptr.To(cfg.LeaseDuration * 2 / 3),
		RetryPeriod:                   ptr.To(cfg.LeaseDuration * 2 / 15),
	})
	if err != nil {
		return nil, fmt.Errorf("cannot make the operator: %w", err)
	}
	o := &Operator{manager: manager, webhooks: cfg.Webhooks, drain: cfg.Drain}
	if err := o.addDomains(cfg); err != nil {
		return nil, err
	}
	if err := o.addDeadNodes(cfg); err != nil {
		return nil, err
	}
	o.handler = o.newHandler(cfg.WebhookClientsKnown)
	return o, o.addChecks(cfg.Ready)
}

// checkWithout rejects names of kinds that cannot be left to other controllers.
func checkWithout(without []string, domains []domain.Domain) error {
	var known []string
	for _, k := range domain.Kinds(domains...) {
		if k.Without != "" && !slices.Contains(known, k.Without) {
			known = append(known, k.Without)
		}
	}
	slices.Sort(known)
	for _, name := range without {
		if !slices.Contains(known, name) {
			return fmt.Errorf("cannot leave %q to other controllers: only %s can be", name, strings.Join(known, ", "))
		}
	}
	return nil
}

// addDomains sets up each domain.
func (o *Operator) addDomains(cfg Config) error {
	m := o.manager
	direct, err := client.New(cfg.REST, client.Options{HTTPClient: m.GetHTTPClient(), Scheme: m.GetScheme(), Mapper: m.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("cannot make the operator: %w", err)
	}
	host := domain.Host{
		Manager: m, Direct: direct, Kinds: domain.Kinds(cfg.Domains...), Namespace: cmp.Or(cfg.Namespace, DefaultNamespace),
		Without: cfg.Without, WebhookClientsKnown: cfg.WebhookClientsKnown, Registerer: ctrlmetrics.Registry,
	}
	for _, d := range cfg.Domains {
		offer, err := domain.SetUp(d, host)
		if err != nil {
			return err
		}
		o.offers = append(o.offers, offer)
	}
	return nil
}

// addDeadNodes adds the reconciler that deletes the domains' Pods from dead nodes.
func (o *Operator) addDeadNodes(cfg Config) error {
	config := deadnode.DefaultConfig()
	config.Labels = domain.PodLabels(domain.Kinds(cfg.Domains...))
	config.Events = reconciling.NewEvents(o.manager.GetEventRecorder(deadnode.Name))
	return deadnode.SetupWithManager(o.manager, config)
}

// newHandler returns the handler of the webhook server.
func (o *Operator) newHandler(clientsKnown bool) http.Handler {
	mux := http.NewServeMux()
	for _, offer := range o.offers {
		for path, answer := range offer.Answers {
			handler := http.Handler(&ctrladmission.Webhook{Handler: answer})
			if clientsKnown {
				handler = admission.RequireClient(handler)
			}
			mux.Handle(path, handler)
		}
		for pattern, handler := range offer.Requests {
			mux.Handle(pattern, handler)
		}
	}
	return mux
}

// Servers returns the domains' servers. They work while the Operator runs.
func (o *Operator) Servers() []domain.Server {
	var servers []domain.Server
	for _, offer := range o.offers {
		servers = append(servers, offer.Servers...)
	}
	return servers
}

// Run works until ctx ends, and returns when all has stopped.
func (o *Operator) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := o.manager.Start(ctx); err != nil {
			return fmt.Errorf("the operator ended: %w", err)
		}
		return nil
	})
	if o.webhooks != nil {
		group.Go(func() error { return o.serveWebhooks(ctx) })
	}
	return group.Wait()
}

// metricsOptions say how metrics are served.
func metricsOptions(cfg Config) metricsserver.Options {
	options := metricsserver.Options{BindAddress: cfg.MetricsAddress}
	if cfg.MetricsCertificate != nil {
		options.SecureServing = true
		options.FilterProvider = filters.WithAuthenticationAndAuthorization
		options.TLSOpts = []func(*tls.Config){func(c *tls.Config) { c.GetCertificate = cfg.MetricsCertificate }}
	}
	return options
}

// addChecks has the probes answer: /healthz always, /readyz when the caches are
// filled and more, if set, has no reason against it.
func (o *Operator) addChecks(more func() error) error {
	ready := func(request *http.Request) error {
		soon, cancel := context.WithTimeout(request.Context(), 100*time.Millisecond)
		defer cancel()
		if o.WaitReady(soon) != nil {
			return errors.New("the caches are not filled yet")
		}
		if more != nil {
			return more()
		}
		return nil
	}
	if err := errors.Join(o.manager.AddHealthzCheck("alive", healthz.Ping), o.manager.AddReadyzCheck("ready", ready)); err != nil {
		return fmt.Errorf("cannot make the operator: %w", err)
	}
	return nil
}

// WaitReady returns when the reconcilers work, or ctx ends. A standby that
// waits to become the leader is ready too.
func (o *Operator) WaitReady(ctx context.Context) error {
	filled := o.manager.GetCache().WaitForCacheSync(ctx)
	for _, offer := range o.offers {
		filled = filled && offer.Cache.WaitForCacheSync(ctx)
	}
	if !filled {
		return fmt.Errorf("the operator is not ready: %w", context.Cause(ctx))
	}
	return nil
}

func (o *Operator) serveWebhooks(ctx context.Context) error {
	server := &http.Server{
		Handler:           closing(ctx, o.handler),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(logr.ToSlogHandler(klog.Background().WithName("webhooks")), slog.LevelInfo),
	}
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		time.Sleep(o.drain)
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if err := server.Shutdown(grace); err != nil {
			err = server.Close()
			stopped <- err
			return
		}
		stopped <- nil
	}()
	if err := server.Serve(o.webhooks); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("the webhooks ended: %w", err)
	}
	return <-stopped
}

// closing has clients close their connections once ctx is done. A server that is shut
// down closes those that are idle, and a question that comes at that moment fails.
func closing(ctx context.Context, handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ctx.Err() != nil {
			w.Header().Set("Connection", "close")
		}
		handler.ServeHTTP(w, r)
	})
}
