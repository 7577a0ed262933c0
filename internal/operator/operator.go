// SPDX-License-Identifier: Apache-2.0

// Package operator puts Diwan's reconcilers and their admission webhooks
// together into one program part that runs against a Kubernetes API.
//
// The local cluster runs an Operator in its own process, `diwan operator`
// runs one on a user's cluster; it is the same code, and it does not know
// which of the two it is in. What differs is in Config: the credentials, the
// observation store, and where the webhooks listen.
package operator

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/admission"
	"diwan.dev/diwan/internal/algorithm"
	"diwan.dev/diwan/internal/asktell"
	"diwan.dev/diwan/internal/collector/injection"
	"diwan.dev/diwan/internal/collector/injection/registry"
	"diwan.dev/diwan/internal/controller"
	"diwan.dev/diwan/internal/controller/report"
	"diwan.dev/diwan/internal/controller/trainjob"
	"diwan.dev/diwan/internal/earlystopping"
	"diwan.dev/diwan/internal/statusserver"
	"diwan.dev/diwan/observation"
)

// Config says with what an Operator works.
type Config struct {
	// REST are the credentials. Required.
	REST *rest.Config
	// Store holds what trials report. Required; the caller closes it.
	Store observation.Store
	// Namespace is where Diwan is installed: that of ConfigMap katib-config and
	// Service katib-db-manager. Default algorithm.DefaultNamespace.
	Namespace string
	// Webhooks accepts the API server's questions, with TLS done. The Operator
	// closes it. Nil: this Operator answers none.
	Webhooks net.Listener
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
	// Collector, if set, gives the Pods of trials a collector of their metrics.
	// Nil: something else collects them.
	Collector *injection.Config
	// LeaseDuration is how long a leader that has died is waited for, at least
	// a second. Default 15 s. A leader that cannot renew for two thirds of it
	// ends.
	LeaseDuration time.Duration
	// Dial connects to the algorithm services of users, host:port. Default: as
	// any program does.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// Without names the kinds that this Operator leaves to the controllers that
	// the cluster has for them: controller.TrainJobs, controller.JobSets.
	Without []string
	// GangScheduler is the scheduler that places the Pods of training jobs all
	// or none: volcano, or one with the coscheduling plugin. Default: none.
	GangScheduler string
	// GangsByPolicy leaves jobs without a schedulingPolicy out of that.
	GangsByPolicy bool
	// InstallRuntimes has the Operator install the ClusterTrainingRuntimes that
	// TrainJobs name, unless it runs without TrainJobs. Default off.
	InstallRuntimes bool
	// StatusServer is where the Pods of TrainJobs tell how far they are: what
	// StatusHandler answers, as they reach it. The webhooks' listener has it too.
	// Default: none.
	StatusServer trainjob.StatusServer
	// Add, if set, adds more reconcilers to the same manager.
	Add func(ctrl.Manager) error
}

// DefaultConfig is the configuration of a single Operator without webhooks.
func DefaultConfig(config *rest.Config, store observation.Store) Config {
	return Config{REST: config, Store: store, MetricsAddress: "0", ProbeAddress: "0", LeaseDuration: 15 * time.Second}
}

// Operator is the reconcilers and webhooks, ready to run.
type Operator struct {
	manager  ctrl.Manager
	webhooks net.Listener
	handler  http.Handler
	status   http.Handler
	store    observation.Store
	stopping *earlystopping.History
	events   *report.Events
}

// New puts an Operator together. It reaches the API server to learn its kinds.
func New(cfg Config) (*Operator, error) {
	scheme, err := controller.NewScheme()
	if err != nil {
		return nil, err
	}
	cache, err := controller.CacheOptions()
	if err != nil {
		return nil, err
	}
	manager, err := ctrl.NewManager(cfg.REST, ctrl.Options{
		Scheme:                        scheme,
		Cache:                         cache,
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
	if err := addChecks(manager, cfg.Ready); err != nil {
		return nil, err
	}
	if err := asktell.Index(context.Background(), manager.GetFieldIndexer()); err != nil {
		return nil, err
	}
	stopping := earlystopping.NewHistory(cfg.Store, manager.GetCache())
	if err := controller.Setup(manager, controller.Options{Store: cfg.Store, Namespace: cfg.Namespace, Stopping: stopping, Dial: cfg.Dial, Without: cfg.Without, GangScheduler: cfg.GangScheduler, GangsByPolicy: cfg.GangsByPolicy, StatusServer: cfg.StatusServer}); err != nil {
		return nil, err
	}
	if cfg.InstallRuntimes && !slices.Contains(cfg.Without, controller.TrainJobs) {
		if err := manager.Add(runtimeInstaller{manager.GetClient()}); err != nil {
			return nil, fmt.Errorf("cannot make the operator: %w", err)
		}
	}
	if cfg.Add != nil {
		if err := cfg.Add(manager); err != nil {
			return nil, fmt.Errorf("cannot make the operator: %w", err)
		}
	}
	questions := admission.Config{
		Algorithms: algorithms(),
		More:       services(algorithm.Directory{Reader: manager.GetAPIReader(), Namespace: cfg.Namespace}),
		ConfigMaps: readConfigMap(manager.GetAPIReader()),
		Ancestry:   admission.NewAncestry(manager.GetAPIReader(), clock.RealClock{}),
		Reader:     manager.GetAPIReader(),
	}
	if cfg.Collector != nil {
		images := &registry.Registry{Reader: manager.GetAPIReader()}
		questions.Collect = (&injection.Injector{Config: *cfg.Collector, Images: images}).Pod
	}
	mux := http.NewServeMux()
	for path, handler := range admission.Handlers(questions) {
		mux.Handle(path, handler)
	}
	direct, err := client.New(cfg.REST, client.Options{HTTPClient: manager.GetHTTPClient(), Scheme: scheme, Mapper: manager.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("cannot make the operator: %w", err)
	}
	status := statusserver.New(direct)
	if cfg.StatusServer.URL != "" {
		mux.Handle(statusserver.Pattern, status)
	}
	return &Operator{manager: manager, status: status, webhooks: cfg.Webhooks, handler: mux, store: cfg.Store, stopping: stopping,
		events: report.NewEvents(manager.GetEventRecorder("metrics-collector"))}, nil
}

// Warn records that something is wrong with the metrics of a trial, as an event
// on it, unless it is gone. It works while the Operator runs.
func (o *Operator) Warn(ctx context.Context, t observation.Trial, message string) error {
	trial := &v1beta1.Trial{}
	if err := o.manager.GetCache().Get(ctx, client.ObjectKey{Namespace: t.Namespace, Name: t.Name}, trial); err != nil {
		return client.IgnoreNotFound(err)
	}
	o.events.Warning(trial, v1beta1.ReasonMetricsCollection, "%s", message)
	return nil
}

// AskTell returns what hands trials to programs, and takes what they tell. It
// works while the Operator runs; api speaks to the API server for it.
func (o *Operator) AskTell(api client.Client, access asktell.Access) *asktell.Server {
	config := asktell.DefaultConfig()
	config.Cache, config.API, config.Access = o.manager.GetCache(), api, access
	config.Store, config.Stopping = o.store, o.stopping
	config.Leads = func() bool {
		select {
		case <-o.manager.Elected():
			return true
		default:
			return false
		}
	}
	return asktell.New(config)
}

// StatusHandler takes what the Pods of TrainJobs tell of themselves.
func (o *Operator) StatusHandler() http.Handler { return o.status }

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
func addChecks(manager ctrl.Manager, more func() error) error {
	ready := func(request *http.Request) error {
		soon, cancel := context.WithTimeout(request.Context(), 100*time.Millisecond)
		defer cancel()
		if !manager.GetCache().WaitForCacheSync(soon) {
			return errors.New("the caches are not filled yet")
		}
		if more != nil {
			return more()
		}
		return nil
	}
	if err := errors.Join(manager.AddHealthzCheck("alive", healthz.Ping), manager.AddReadyzCheck("ready", ready)); err != nil {
		return fmt.Errorf("cannot make the operator: %w", err)
	}
	return nil
}

// WaitReady returns when the reconcilers work, or ctx ends. A standby that
// waits to become the leader is ready too.
func (o *Operator) WaitReady(ctx context.Context) error {
	if !o.manager.GetCache().WaitForCacheSync(ctx) {
		return fmt.Errorf("the operator is not ready: %w", context.Cause(ctx))
	}
	return nil
}

// Reader reads from the reconcilers' cache. It works while the Operator runs.
func (o *Operator) Reader() client.Reader { return o.manager.GetCache() }

func (o *Operator) serveWebhooks(ctx context.Context) error {
	server := &http.Server{
		Handler:           o.handler,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
	}
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
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
