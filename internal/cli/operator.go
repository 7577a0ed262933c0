// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	asktell "diwan.dev/diwan/api/asktell/v1"
	"diwan.dev/diwan/internal/algorithm"
	"diwan.dev/diwan/internal/collector/injection"
	"diwan.dev/diwan/internal/controller"
	"diwan.dev/diwan/internal/dbmanager"
	"diwan.dev/diwan/internal/dbmanager/access"
	"diwan.dev/diwan/internal/operator"
	"diwan.dev/diwan/internal/tracing"
	"diwan.dev/diwan/observation"
	"diwan.dev/diwan/observation/stores"
)

// operatorFlags are the flags of `diwan operator`.
type operatorFlags struct {
	webhooks        webhookFlags
	metricsAddress  string
	metricsSecure   bool
	healthAddress   string
	reportAddress   string
	askAddress      string
	collectorImage  string
	collectorStore  string
	leaderElection  bool
	leaderNamespace string
	namespace       string
	installRuntimes bool
	leaseDuration   time.Duration
	logFormat       string
	without         []string
	gangScheduler   string
	requestRate     int
}

// operator returns the command that runs the controllers alone, for a cluster.
func (a *app) operator() *cobra.Command {
	var f operatorFlags
	command := &cobra.Command{
		Use:   "operator",
		Short: "Run the controllers against a cluster",
		Long: `Operator runs Diwan's controllers and admission webhooks, and nothing else. Within a
cluster it uses the credentials of its Pod, outside those of the kubeconfig. It takes
the place of Katib's controller: run only one of the two in a cluster.

` + storeHelp,
		Example: `  # Against the cluster that kubectl talks to, without webhooks.
  diwan operator --store sqlite:/var/lib/diwan/observations.db

  # In a cluster, one of several replicas, with a store that they share.
  diwan operator --leader-elect --webhook-service kubeflow/diwan-operator \
    --webhook-secret kubeflow/diwan-webhooks --store @/secrets/store`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			if err := f.check(); err != nil {
				return err
			}
			ctx, release := interruptible(context.Background())
			defer release()
			err := a.operate(ctx, f)
			if errors.Is(context.Cause(ctx), errInterrupted) && errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		},
	}
	flags := command.Flags()
	a.options.addStore(command, "required")
	f.webhooks.addTo(command)
	flags.BoolVar(&f.metricsSecure, "metrics-secure", false, "serve metrics by HTTPS, with the webhooks' certificate, to those who may get /metrics")
	flags.StringVar(&f.metricsAddress, "metrics-address", "0", "address of Prometheus metrics; 0 for none")
	flags.StringVar(&f.healthAddress, "health-address", "0", "address of /healthz and /readyz; 0 for none")
	flags.StringVar(&f.reportAddress, "db-manager-address", "0", "address of Katib's gRPC service DBManager, such as :6789; 0 for none")
	flags.StringVar(&f.askAddress, "ask-address", "0", "address where programs ask for trials by HTTP, such as :6790; by gRPC they do at that of --db-manager-address; 0 for none")
	flags.StringVar(&f.collectorImage, "collector-image", "", "image with diwan-collector, of which the Pods of trials get a container; none if empty")
	flags.StringVar(&f.collectorStore, "collector-db-manager", "", "address of the DBManager as the Pods of trials reach it (default that of Service katib-db-manager in --system-namespace)")
	flags.BoolVar(&f.leaderElection, "leader-elect", false, "work only while no other operator does")
	flags.StringVar(&f.leaderNamespace, "leader-namespace", "", "namespace of the lease that elects (default that of the Pod)")
	flags.StringVar(&f.namespace, "system-namespace", cmp.Or(os.Getenv("POD_NAMESPACE"), algorithm.DefaultNamespace), "namespace of ConfigMap katib-config and Service katib-db-manager, $POD_NAMESPACE where it is set")
	flags.BoolVar(&f.installRuntimes, "install-runtimes", false, "install the ClusterTrainingRuntimes that TrainJobs name")
	flags.StringSliceVar(&f.without, "without", nil, "kinds for which the cluster has controllers of its own: trainjobs, jobsets, pytorchjobs, tfjobs, …")
	flags.StringVar(&f.gangScheduler, "gang-scheduler-name", "", "scheduler that places the Pods of a training job all or none: kubernetes for Kubernetes' own PodGroups (1.37), volcano, or the name of one with the coscheduling plugin; none if empty")
	flags.IntVar(&f.requestRate, "kube-api-qps", 0, "requests a second to the API server, of each client; 0 for as many as the server takes, which shares its time out by itself")
	flags.DurationVar(&f.leaseDuration, "leader-lease", 15*time.Second, "how long a leader that has died is waited for")
	flags.StringVar(&f.logFormat, "log-format", logText, "form of the log: text or json")
	return command
}

// check refuses flags that do not fit together.
func (f *operatorFlags) check() error {
	switch {
	case f.requestRate < 0:
		return usagef("cannot use --kube-api-qps=%d: want 0 or more", f.requestRate)
	case f.leaseDuration < time.Second:
		return usagef("cannot use --leader-lease=%s: want at least 1s", f.leaseDuration)
	case f.metricsSecure && !f.webhooks.served():
		return usagef("--metrics-secure needs the webhooks' certificate: set --webhook-certs or --webhook-secret")
	case f.logFormat != logText && f.logFormat != logJSON:
		return usagef("unknown --log-format %q: want text or json", f.logFormat)
	}
	return f.webhooks.check()
}

// operate runs the controllers until ctx ends.
func (a *app) operate(ctx context.Context, f operatorFlags) error {
	location, err := a.options.storeLocation()
	if err != nil {
		return err
	}
	if location == "" {
		return usagef("--store is missing: say where metrics are kept, such as --store sqlite:/var/lib/diwan/observations.db")
	}
	if f.logFormat == logJSON {
		defer logAsJSON(a.streams.Err)()
	}
	ctrl.SetLogger(klog.Background())
	credentials, err := a.operatorCredentials()
	if err != nil {
		return err
	}
	// Where nothing is said, client-go asks no more than five times a second.
	credentials.QPS, credentials.Burst = float32(cmp.Or(f.requestRate, -1)), 2*f.requestRate
	ctx, sendTraces, err := tracing.Setup(ctx, "diwan-operator", version)
	if err != nil {
		return err
	}
	defer func() { // a collector that is away keeps nobody from ending
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		_ = sendTraces(last)
	}()
	opened, err := stores.Open(ctx, location)
	if err != nil {
		return err
	}
	store := observation.Announce(tracing.Store(opened))
	group, ctx := errgroup.WithContext(ctx)
	if err := startOperator(ctx, group, f, credentials, store); err != nil {
		group.Go(func() error { return err })
	}
	return errors.Join(group.Wait(), store.Close())
}

// startOperator starts what runs until ctx ends.
func startOperator(ctx context.Context, group *errgroup.Group, f operatorFlags, credentials *rest.Config, store observation.Store) error {
	api, err := uncachedClient(credentials)
	if err != nil {
		return err
	}
	config := operator.DefaultConfig(credentials, store)
	config.MetricsAddress, config.ProbeAddress = f.metricsAddress, f.healthAddress
	config.LeaderElection, config.LeaderNamespace, config.LeaseDuration = f.leaderElection, f.leaderNamespace, f.leaseDuration
	config.Without, config.GangScheduler = f.without, f.gangScheduler
	config.Namespace, config.InstallRuntimes = f.namespace, f.installRuntimes
	if f.collectorImage != "" {
		collector := injection.DefaultConfig(f.collectorImage, cmp.Or(f.collectorStore, algorithm.DBManagerAddress(f.namespace)))
		config.Collector = &collector
	}
	if f.webhooks.served() {
		certificate, err := f.webhooks.certificate(api)
		if err != nil {
			return err
		}
		if config.Webhooks, err = listenTLS(f.webhooks.address, certificate.get); err != nil {
			return err
		}
		config.Ready, config.StatusServer = certificate.ready, f.webhooks.statusServer(certificate)
		if f.metricsSecure {
			config.MetricsCertificate = certificate.get
		}
		group.Go(func() error { return certificate.keep(ctx) })
	}
	controllers, err := operator.New(config)
	if err != nil {
		return err
	}
	if f.reportAddress != "0" || f.askAddress != "0" {
		serve, err := serveReports(f, api, store, controllers)
		if err != nil {
			return err
		}
		group.Go(func() error { return serve(ctx) })
	}
	group.Go(func() error { return controllers.Run(ctx) })
	return nil
}

// uncachedClient speaks to the API server itself.
func uncachedClient(credentials *rest.Config) (client.Client, error) {
	scheme, err := controller.NewScheme()
	if err != nil {
		return nil, err
	}
	api, err := client.New(credentials, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("cannot make a client: %w", err)
	}
	return api, nil
}

// serveReports listens for what trials report, and for programs that ask for
// trials; serve answers them.
func serveReports(f operatorFlags, api client.Client, store observation.Store, controllers *operator.Operator) (serve func(context.Context) error, err error) {
	reports, err := listenUnlessOff(f.reportAddress, "reports")
	if err != nil {
		return nil, err
	}
	questions, err := listenUnlessOff(f.askAddress, "questions")
	if err != nil {
		return nil, err
	}
	who := access.New(controllers.Reader(), api)
	asked := controllers.AskTell(api, who)
	config := dbmanager.DefaultConfig(store, who)
	config.Warn = controllers.Warn
	config.Beside = func(r grpc.ServiceRegistrar) { asktell.RegisterAskTellServer(r, asked) }
	return func(ctx context.Context) error {
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error { return asked.Follow(ctx) })
		group.Go(func() error { return dbmanager.New(config).Serve(ctx, reports...) })
		group.Go(func() error { return asked.ServeHTTP(ctx, questions...) })
		return group.Wait()
	}, nil
}

// listenUnlessOff listens on an address; on "0" it does not.
func listenUnlessOff(address, what string) ([]net.Listener, error) {
	if address == "0" {
		return nil, nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen for %s: %w", what, err)
	}
	return []net.Listener{listener}, nil
}

// operatorCredentials are those of the Pod that this runs in or, if the flags name a cluster or
// this is no Pod, of the kubeconfig.
func (a *app) operatorCredentials() (*rest.Config, error) {
	if !a.options.remote() {
		if config, err := rest.InClusterConfig(); err == nil {
			return config, nil
		}
	}
	config, err := a.options.clientConfig().ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("cannot use the kubeconfig: %w", err)
	}
	return config, nil
}
