// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"diwan.dev/diwan/internal/platform/node"
	"diwan.dev/diwan/internal/platform/node/image"
	"diwan.dev/diwan/internal/platform/node/network"
	"diwan.dev/diwan/internal/platform/node/server"
)

// nodeFlags are a node's flags; the rest is in its home.
type nodeFlags struct {
	home, name, kubeconfig string
	authority, certificate string
	apiServerUser          string
	services               string
	stopGrace              time.Duration
}

// lease is how long the node's Lease lasts. It is renewed each second, so that
// tests may have a machine be taken as dead after some seconds of silence.
const lease = 4 * time.Second

// nodeCommand runs Pods as processes. Like a kubelet it knows nothing of
// tuning: no collector looks at what its containers print.
func nodeCommand() *cobra.Command {
	var f nodeFlags
	command := &cobra.Command{
		Use:          "node",
		SilenceUsage: true,
		RunE: func(*cobra.Command, []string) error {
			ctx, stop := untilSignal()
			defer stop()
			return runNode(ctx, f)
		},
	}
	flags := command.Flags()
	flags.StringVar(&f.home, "home", "", "directory of the node's state and of images.yaml")
	flags.StringVar(&f.name, "name", "node", "name of the Node")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "the way to the API server")
	flags.StringVar(&f.authority, "client-ca-file", "", "PEM certificate of the cluster's authority")
	flags.StringVar(&f.certificate, "tls-file", "", "PEM certificate and key of the node's server")
	flags.StringVar(&f.apiServerUser, "api-server-user", "kube-apiserver", "the user who may ask the node's server")
	flags.StringVar(&f.services, "services", "", "CIDR of the cluster IPs, where another node of this machine answers at them")
	flags.DurationVar(&f.stopGrace, "stop-grace", time.Second, "time that containers have to end when the node does")
	return command
}

func untilSignal() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
}

func runNode(ctx context.Context, f nodeFlags) error {
	config, err := clientcmd.BuildConfigFromFlags("", f.kubeconfig)
	if err != nil {
		return fmt.Errorf("cannot read the kubeconfig: %w", err)
	}
	config.QPS = -1
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("cannot create a client: %w", err)
	}
	plan, err := network.PlanFor(f.home)
	if err != nil {
		return err
	}
	log := klog.Background().WithName("node")
	networkConfig := network.Default(plan)
	networkConfig.Log = log
	pods, err := network.New(networkConfig)
	if err != nil {
		return err
	}
	images, err := image.Open(image.Default(f.home))
	if err != nil {
		return errors.Join(err, pods.Close())
	}
	api, err := addressOf(config.Host)
	if err != nil {
		return errors.Join(err, pods.Close())
	}
	factory := informers.NewSharedInformerFactory(kube, 0)
	names, err := network.NewNames(factory, pods, log)
	if err != nil {
		return errors.Join(err, pods.Close())
	}
	services := plan.Services
	var proxy *network.Proxy
	if f.services != "" {
		services, err = netip.ParsePrefix(f.services)
	} else {
		proxy, err = network.NewProxy(factory, pods, api, log)
	}
	if err != nil {
		return errors.Join(err, pods.Close())
	}
	cfg := node.DefaultConfig(f.home)
	cfg.NodeName, cfg.Client, cfg.Network, cfg.Images, cfg.Hosts, cfg.Log = f.name, kube, pods, images, names, log
	cfg.StopGrace, cfg.LeaseDuration = f.stopGrace, lease
	cfg.APIServer = api.String()
	if pods.ClusterIPs() {
		cfg.APIServer = netip.AddrPortFrom(services.Masked().Addr().Next(), 443).String()
	}
	return errors.Join(serve(ctx, f, cfg, factory, names, proxy), pods.Close())
}

// serve runs the node, its names, Services if it has a proxy, and what answers the
// API server.
func serve(ctx context.Context, f nodeFlags, cfg node.Config, factory informers.SharedInformerFactory, names *network.Names, proxy *network.Proxy) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("cannot listen for the API server's calls: %w", err)
	}
	defer listener.Close()
	cfg.Port = int32(listener.Addr().(*net.TCPAddr).Port)
	n, err := node.New(cfg)
	if err != nil {
		return err
	}
	cfg.Log.Info("The node begins", "name", cfg.NodeName, "port", cfg.Port)
	calls, err := answers(f, n)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	// Names and Services work until the last container has ended.
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	factory.Start(serving.Done())
	group.Go(func() error { names.Run(serving); return nil })
	if proxy != nil {
		group.Go(func() error { proxy.Run(serving); return nil })
	}
	group.Go(func() error { return calls.Serve(serving, listener) })
	group.Go(func() error {
		defer stop()
		return n.Run(ctx)
	})
	err = group.Wait()
	factory.Shutdown()
	return err
}

// answers is what answers the API server on behalf of kubectl logs and exec.
func answers(f nodeFlags, backend server.Backend) (*server.Server, error) {
	pair, err := tls.LoadX509KeyPair(f.certificate, f.certificate)
	if err != nil {
		return nil, fmt.Errorf("cannot read the node's certificate: %w", err)
	}
	text, err := os.ReadFile(f.authority)
	if err != nil {
		return nil, fmt.Errorf("cannot read the cluster's authority: %w", err)
	}
	cfg := server.Default()
	cfg.NodeName, cfg.Backend, cfg.Certificate = f.name, backend, pair
	cfg.Authority = x509.NewCertPool()
	cfg.Authority.AppendCertsFromPEM(text)
	cfg.Clients = []string{f.apiServerUser}
	cfg.Log = klog.Background().WithName("node-server")
	return server.New(cfg)
}

// addressOf is the address in a URL.
func addressOf(host string) (netip.AddrPort, error) {
	u, err := url.Parse(host)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("cannot read the API server's URL: %w", err)
	}
	address, err := netip.ParseAddrPort(u.Host)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("cannot read the API server's URL %s: %w", host, err)
	}
	return address, nil
}
