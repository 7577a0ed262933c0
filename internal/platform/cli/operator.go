// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/internal/platform/domain"
	"diwan.dev/diwan/internal/platform/operator"
	"diwan.dev/diwan/internal/platform/tracing"
	"diwan.dev/diwan/observation"
	"diwan.dev/diwan/observation/stores"
)

// operatorFlags are the flags of `diwan operator`.
type operatorFlags struct {
	webhooks        webhookFlags
	metricsAddress  string
	metricsSecure   bool
	healthAddress   string
	leaderElection  bool
	leaderNamespace string
	namespace       string
	leaseDuration   time.Duration
	logFormat       string
	without         []string
	requestRate     int
}

// operator returns the command that runs only the controllers, for a cluster.
func (a *app) operator() *cobra.Command {
	var f operatorFlags
	command := &cobra.Command{
		Use:   "operator",
		Short: "Run the controllers against a cluster",
		Long: `Operator runs only Diwan's controllers and admission webhooks. In a cluster it uses the
credentials of its Pod, otherwise those of the kubeconfig. It replaces Katib's
controller: run only one of the two in a cluster.

` + storeHelp,
		Example: `  # Against kubectl's current cluster, without webhooks.
  diwan operator --store sqlite:/var/lib/diwan/observations.db

  # In a cluster, as one of several replicas, with a shared store.
  diwan operator --leader-elect --webhook-service kubeflow/diwan-operator \
    --webhook-secret kubeflow/diwan-webhooks --store @/secrets/store`,
		Args:              NoArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			if err := f.check(); err != nil {
				return err
			}
			ctx, release := Interruptible(context.Background())
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
	for _, part := range a.house.operators() {
		if part.AddFlags != nil {
			part.AddFlags(flags)
		}
	}
	flags.BoolVar(&f.metricsSecure, "metrics-secure", false, "serve metrics over HTTPS, with the webhooks' certificate, to clients that may get /metrics")
	flags.StringVar(&f.metricsAddress, "metrics-address", "0", "listen address for Prometheus metrics; 0 to disable")
	flags.StringVar(&f.healthAddress, "health-address", "0", "listen address for /healthz and /readyz; 0 to disable")
	flags.BoolVar(&f.leaderElection, "leader-elect", false, "elect a leader among several operators; only the leader is active")
	flags.StringVar(&f.leaderNamespace, "leader-namespace", "", "namespace of the leader election Lease (default that of the Pod)")
	flags.StringVar(&f.namespace, "system-namespace", cmp.Or(os.Getenv("POD_NAMESPACE"), operator.DefaultNamespace), "namespace of ConfigMap katib-config and Service katib-db-manager; defaults to $POD_NAMESPACE if set")
	flags.StringSliceVar(&f.without, "without", nil, "kinds for which the cluster has other controllers: trainjobs, jobsets, pytorchjobs, tfjobs, …")
	flags.IntVar(&f.requestRate, "kube-api-qps", 0, "requests per second to the API server, per client; 0 for no limit, leaving it to the server's priority and fairness")
	flags.DurationVar(&f.leaseDuration, "leader-lease", 15*time.Second, "how long to wait for a dead leader before taking over")
	flags.StringVar(&f.logFormat, "log-format", logText, "log format: text or json")
	return command
}

// check refuses flags that do not fit together.
func (f *operatorFlags) check() error {
	switch {
	case f.requestRate < 0:
		return Usagef("cannot use --kube-api-qps=%d: want 0 or more", f.requestRate)
	case f.leaseDuration < time.Second:
		return Usagef("cannot use --leader-lease=%s: want at least 1s", f.leaseDuration)
	case f.metricsSecure && !f.webhooks.served():
		return Usagef("--metrics-secure requires the webhooks' certificate: set --webhook-certs or --webhook-secret")
	case f.logFormat != logText && f.logFormat != logJSON:
		return Usagef("unknown --log-format %q: want text or json", f.logFormat)
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
		return Usagef("--store is missing: specify where to keep metrics, such as --store sqlite:/var/lib/diwan/observations.db")
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
	if err := a.startOperator(ctx, group, f, credentials, store); err != nil {
		group.Go(func() error { return err })
	}
	return errors.Join(group.Wait(), store.Close())
}

// startOperator starts what runs until ctx ends.
func (a *app) startOperator(ctx context.Context, group *errgroup.Group, f operatorFlags, credentials *rest.Config, store observation.Store) error {
	api, err := a.uncachedClient(credentials)
	if err != nil {
		return err
	}
	lent := Lent{Namespace: f.namespace, Store: store}
	config := operator.DefaultConfig(credentials)
	config.MetricsAddress, config.ProbeAddress = f.metricsAddress, f.healthAddress
	config.LeaderElection, config.LeaderNamespace, config.LeaseDuration = f.leaderElection, f.leaderNamespace, f.leaseDuration
	config.Namespace, config.Without = f.namespace, f.without
	if f.webhooks.served() {
		certificate, err := f.webhooks.certificate(api)
		if err != nil {
			return err
		}
		if config.Webhooks, err = f.webhooks.listen(certificate.get); err != nil {
			return err
		}
		config.WebhookClientsKnown, config.Drain = f.webhooks.clientCA != "", webhookDrain
		config.Ready, lent.Service = certificate.ready, f.webhooks.reached(certificate)
		if f.metricsSecure {
			config.MetricsCertificate = certificate.get
		}
		group.Go(func() error { return certificate.keep(ctx) })
	}
	addresses := map[string]string{}
	for _, part := range a.house.operators() {
		d, err := part.Domain(lent)
		if err != nil {
			return err
		}
		config.Domains = append(config.Domains, d)
		if part.Addresses != nil {
			maps.Copy(addresses, part.Addresses())
		}
	}
	controllers, err := operator.New(config)
	if err != nil {
		return err
	}
	if err := serve(ctx, group, controllers.Servers(), addresses); err != nil {
		return err
	}
	group.Go(func() error { return controllers.Run(ctx) })
	return nil
}

// serve runs those servers for which there is an address, by their names.
func serve(ctx context.Context, group *errgroup.Group, servers []domain.Server, addresses map[string]string) error {
	for _, s := range servers {
		address := addresses[s.Name]
		if address == "" || address == "0" {
			continue
		}
		listener, err := net.Listen("tcp", address)
		if err != nil {
			return fmt.Errorf("cannot serve port %s of Service %s: %w", s.Name, s.Service.Name, err)
		}
		group.Go(func() error { return s.Serve(ctx, listener) })
	}
	return nil
}

// uncachedClient speaks to the API server itself.
func (a *app) uncachedClient(credentials *rest.Config) (client.Client, error) {
	scheme, err := a.house.scheme()
	if err != nil {
		return nil, err
	}
	api, err := client.New(credentials, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("cannot create a client: %w", err)
	}
	return api, nil
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
