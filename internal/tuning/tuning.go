// SPDX-License-Identifier: Apache-2.0

package tuning

import (
	"context"
	"errors"
	"net"
	"net/netip"

	"google.golang.org/grpc"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	askapi "diwan.dev/diwan/api/asktell/v1"
	"diwan.dev/diwan/api/kubeflow/v1beta1"
	trainer "diwan.dev/diwan/api/trainer/v1alpha1"
	"diwan.dev/diwan/internal/platform/domain"
	"diwan.dev/diwan/internal/platform/reconciling"
	"diwan.dev/diwan/internal/tuning/admission"
	"diwan.dev/diwan/internal/tuning/algorithm"
	"diwan.dev/diwan/internal/tuning/asktell"
	"diwan.dev/diwan/internal/tuning/collector/injection"
	"diwan.dev/diwan/internal/tuning/collector/injection/registry"
	"diwan.dev/diwan/internal/tuning/dbmanager"
	"diwan.dev/diwan/internal/tuning/dbmanager/access"
	"diwan.dev/diwan/internal/tuning/earlystopping"
	"diwan.dev/diwan/internal/tuning/experiment"
	"diwan.dev/diwan/internal/tuning/metrics"
	"diwan.dev/diwan/internal/tuning/optimizationjob"
	"diwan.dev/diwan/internal/tuning/suggestion"
	"diwan.dev/diwan/internal/tuning/trial"
	"diwan.dev/diwan/internal/tuning/trialkind"
	"diwan.dev/diwan/internal/tuning/trialtemplate"
	"diwan.dev/diwan/observation"
)

// Name is the name of the domain.
const Name = "tuning"

// Names of the servers.
const (
	ServerReports = "api" // Katib's DBManager, and ask and tell, over gRPC
	ServerAsk     = "ask" // ask and tell over HTTP
)

// Options are what the domain needs from whoever runs it.
type Options struct {
	// Store holds what trials report. Required. Where it is an
	// [observation.Announcer], trials are stopped early the sooner. It stays the
	// caller's, and must be open until the manager has stopped.
	Store observation.Store
	// Dial connects to the algorithm services of users, host:port. Default: as any
	// program does.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// RunsNothing means that algorithm services are called but not run from images, which
	// requires more permissions. Default: they are run.
	RunsNothing bool
	// Collector, if set, gives the Pods of trials a collector of their metrics.
	// Nil: something else collects them.
	Collector *injection.Config
	// Registries are container registries, besides public ones, that may be queried for an
	// image's command. Default: none.
	Registries registry.Allowed
	// Owner is the bearer token of the owner, who may do everything. Local recognizes
	// connections of the owner's programs, which need no token. Default: no owner.
	Owner string
	Local func(peer, here netip.AddrPort) bool
}

// Tuning is the domain in one process.
type Tuning struct {
	options Options
	trials  struct{ client.Reader }
	events  *reconciling.Events
}

// New returns the domain.
func New(o Options) *Tuning { return &Tuning{options: o} }

// Trials reads trials from the domain's cache. It works once the domain runs.
func (t *Tuning) Trials() client.Reader { return &t.trials }

// Domain returns the declaration of the domain.
func (t *Tuning) Domain() domain.Domain {
	return domain.Domain{
		Name:        Name,
		AddToScheme: AddToScheme,
		Kinds:       kinds(),
		Rules:       rules(),
		Webhooks:    admission.Webhooks(t.options.Collector != nil),
		Cache: map[client.Object]ctrlcache.ByObject{
			&batchv1.Job{}:       {Label: reconciling.HasLabel(v1beta1.LabelTrial)},
			&appsv1.Deployment{}: {Label: reconciling.HasLabel(v1beta1.LabelDeployment)},
		},
		Slim:  trial.Slim,
		SetUp: t.setUp,
	}
}

// AddToScheme registers the kinds of tuning.
func AddToScheme(scheme *runtime.Scheme) error {
	return errors.Join(v1beta1.AddToScheme(scheme), trainer.AddToScheme(scheme))
}

func (t *Tuning) setUp(h *domain.Host) error {
	if t.options.Store == nil {
		return errors.New("tuning.Options.Store is missing")
	}
	t.trials.Reader, t.events = h.GetCache(), h.Events("metrics-collector")
	stopping := earlystopping.NewHistory(t.options.Store, h.GetCache())
	if err := t.addReconcilers(h, stopping); err != nil {
		return err
	}
	for path, answer := range admission.Handlers(t.questions(h)) {
		h.Answer(path, answer)
	}
	return t.addServers(h, stopping)
}

// addReconcilers adds the reconcilers of all kinds.
func (t *Tuning) addReconcilers(h *domain.Host, stopping *earlystopping.History) error {
	counters, err := metrics.NewMetrics(h.Registerer, h.GetCache())
	if err != nil {
		return err
	}
	experiments := experiment.DefaultConfig()
	experiments.Namespace, experiments.Runs = h.Namespace, runDefaults(h.Kinds)
	experiments.Metrics, experiments.Events = counters, h.Events(experiment.Name)
	if err := experiment.SetupWithManager(h, experiments); err != nil {
		return err
	}
	suggestions := suggestion.DefaultConfig()
	suggestions.Stopping, suggestions.RunsNothing = stopping, t.options.RunsNothing
	suggestions.Services = algorithm.Directory{Reader: h.GetAPIReader(), Namespace: h.Namespace}
	suggestions.Client.Dial = t.options.Dial
	suggestions.Events = h.Events(suggestion.Name)
	if err := suggestion.SetupWithManager(h, suggestions); err != nil {
		return err
	}
	trials := trial.DefaultConfig()
	trials.Stopping = stopping
	trials.Store, trials.Metrics, trials.Events = t.options.Store, counters, h.Events(trial.Name)
	trials.Kinds = trialkind.Directory{Reader: h.GetAPIReader(), Namespace: h.Namespace, Known: runKinds(h.Kinds)}
	if err := trial.SetupWithManager(h, trials); err != nil {
		return err
	}
	if !h.Runs(withoutTrainJobs) {
		return nil
	}
	searches := optimizationjob.DefaultConfig()
	searches.Events = h.Events(optimizationjob.Name)
	return optimizationjob.SetupWithManager(h, searches)
}

// questions returns the configuration of the webhooks.
func (t *Tuning) questions(h *domain.Host) admission.Config {
	c := admission.Config{
		Known:      h.WebhookClientsKnown,
		Algorithms: algorithms(),
		More:       services(algorithm.Directory{Reader: h.GetAPIReader(), Namespace: h.Namespace}),
		Runs:       h.Kinds,
		Templates:  trialtemplate.Library{Reader: h.GetAPIReader(), Namespace: h.Namespace},
		Ancestry:   admission.NewAncestry(h.GetAPIReader(), clock.RealClock{}),
	}
	if t.options.Collector != nil {
		images := registry.New(h.GetAPIReader(), t.options.Registries)
		c.Collect = (&injection.Injector{Config: *t.options.Collector, Images: images}).Pod
	}
	return c
}

// addServers registers the servers for reports and for ask and tell.
func (t *Tuning) addServers(h *domain.Host, stopping *earlystopping.History) error {
	if err := asktell.Index(context.Background(), h.GetFieldIndexer()); err != nil {
		return err
	}
	who := access.New(h.GetCache(), h.Direct)
	who.Owner, who.Local = t.options.Owner, t.options.Local
	config := asktell.DefaultConfig()
	config.Cache, config.API, config.Access = h.GetCache(), h.Direct, who
	config.Store, config.Stopping = t.options.Store, stopping
	config.Leads = func() bool {
		select {
		case <-h.Elected():
			return true
		default:
			return false
		}
	}
	asked := asktell.New(config)
	reports := dbmanager.DefaultConfig(t.options.Store, who)
	reports.Warn = t.warn
	reports.Beside = func(r grpc.ServiceRegistrar) { askapi.RegisterAskTellServer(r, asked) }
	service := types.NamespacedName{Namespace: h.Namespace, Name: dbmanager.ServiceName}
	h.Serve(domain.Server{Name: ServerReports, Service: service, Port: dbmanager.Port, File: "db-manager-address", Serve: dbmanager.New(reports).Serve})
	h.Serve(domain.Server{Name: ServerAsk, Service: service, Port: asktell.Port, File: "ask-url", Scheme: "http://", Serve: asked.ServeHTTP})
	return h.Add(following{asked})
}

// following updates an ask-and-tell server, also in an operator that is not the leader.
type following struct{ server *asktell.Server }

// Start implements manager.Runnable.
func (f following) Start(ctx context.Context) error { return f.server.Follow(ctx) }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (following) NeedLeaderElection() bool { return false }

// warn records an event about a trial's metrics, unless the trial is gone.
func (t *Tuning) warn(ctx context.Context, of observation.Trial, message string) error {
	about := &v1beta1.Trial{}
	if err := t.trials.Get(ctx, client.ObjectKey{Namespace: of.Namespace, Name: of.Name}, about); err != nil {
		return client.IgnoreNotFound(err)
	}
	t.events.Warning(about, v1beta1.ReasonMetricsCollection, "%s", message)
	return nil
}

// runKinds returns the kinds that trials may run.
func runKinds(all []domain.Kind) []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for _, k := range all {
		if k.Trial != nil {
			kinds = append(kinds, k.GroupVersionKind)
		}
	}
	return kinds
}

// runDefaults returns the template defaults by kind of run object.
func runDefaults(all []domain.Kind) []v1beta1.RunDefaults { return admission.Runs(all).Defaults() }
