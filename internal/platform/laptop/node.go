// SPDX-License-Identifier: Apache-2.0

package laptop

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"diwan.dev/diwan/internal/platform/domain"
	"diwan.dev/diwan/internal/platform/metricsapi"
	"diwan.dev/diwan/internal/platform/node"
	"diwan.dev/diwan/internal/platform/node/network"
	"diwan.dev/diwan/internal/platform/node/server"
)

// nodeReady bounds how long the node may take to register.
const nodeReady = time.Minute

// startNode runs the node and what serves it, and returns when it is Ready.
func (c *Cluster) startNode(ctx context.Context, cfg Config, servers []domain.Server) error {
	kube, err := typedClient(c.as(nodeUser))
	if err != nil {
		return err
	}
	logger := klog.Background().WithName("node")
	networkConfig := network.Default(c.plan)
	networkConfig.Log = logger
	pods, err := network.New(networkConfig)
	if err != nil {
		return err
	}
	c.network.Store(&pods)
	if why := pods.Shared(); why != nil && cfg.Notice != nil && runtime.GOOS == "linux" { // elsewhere nothing helps
		cfg.Notice(fmt.Sprintf("Pods share the network of this machine, and have no volumes at their paths: %v", why))
	}
	c.onStop(func() {
		if err := pods.Close(); err != nil {
			logger.Error(err, "cannot remove the network")
		}
	})
	if err := c.startServers(ctx, cfg, pods, servers); err != nil {
		return err
	}
	listener, err := listenLoopback()
	if err != nil {
		return fmt.Errorf("cannot listen for the API server's calls to the node: %w", err)
	}

	nodeConfig := node.DefaultConfig(string(cfg.Home))
	nodeConfig.Self = c.images.Executable()
	nodeConfig.NodeName = cfg.NodeName
	if cfg.CPUs > 0 {
		nodeConfig.CPUs = int64(cfg.CPUs)
	}
	nodeConfig.Memory = cfg.Memory
	nodeConfig.Client = kube
	nodeConfig.Network = pods
	nodeConfig.Images = c.images
	if nodeConfig.Puller, err = puller(cfg.Home, c.registry); err != nil {
		listener.Close()
		return err
	}
	nodeConfig.Decorators = c.decorators()
	nodeConfig.Observers = observers(c.wings)
	names, err := c.startNames(ctx, kube, pods, logger)
	if err != nil {
		listener.Close()
		return err
	}
	nodeConfig.Hosts = names
	nodeConfig.APIServer = c.apiServerFor(pods)
	nodeConfig.RootCA = c.keys.authority()
	nodeConfig.Port = int32(portOf(listener))
	nodeConfig.StopGrace = cfg.StopGrace
	nodeConfig.Log = logger
	n, err := node.New(nodeConfig)
	if err != nil {
		listener.Close()
		return err
	}
	c.metrics.Serve(metricsapi.NewMeter(cfg.NodeName, n))
	calls, err := c.nodeServer(cfg, n)
	if err != nil {
		listener.Close()
		return err
	}
	if err := c.background(ctx, func(ctx context.Context) (func(), error) {
		return c.supervise(ctx, func(ctx context.Context) error { return calls.Serve(ctx, listener) }), nil
	}); err != nil {
		return err
	}
	if err := c.background(ctx, func(ctx context.Context) (func(), error) {
		return c.supervise(ctx, n.Run), nil
	}); err != nil {
		return err
	}
	return waitNodeReady(ctx, kube, cfg.NodeName)
}

// observers are those of the wings: the first that wants a container has it.
func observers(wings []Wing) node.Observers {
	var all anyObserver
	for _, w := range wings {
		if w.Observers != nil {
			all = append(all, w.Observers)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

type anyObserver []node.Observers

// Observe implements [node.Observers].
func (all anyObserver) Observe(ctx context.Context, s node.Subject) (node.Observer, error) {
	for _, one := range all {
		if o, err := one.Observe(ctx, s); o != nil || err != nil {
			return o, err
		}
	}
	return nil, nil
}

// startNames runs what makes Pods and Services reachable by name and address.
func (c *Cluster) startNames(ctx context.Context, kube kubernetes.Interface, pods network.Network, log logr.Logger) (*network.Names, error) {
	api, err := netip.ParseAddrPort(c.address)
	if err != nil {
		return nil, fmt.Errorf("cannot read the API server's address: %w", err)
	}
	shared := informers.NewSharedInformerFactoryWithOptions(kube, 0, informers.WithTransform(withoutManagedFields))
	names, err := network.NewNames(shared, pods, log)
	if err != nil {
		return nil, err
	}
	proxy, err := network.NewProxy(shared, pods, api, log)
	if err != nil {
		return nil, err
	}
	return names, c.background(ctx, func(ctx context.Context) (func(), error) {
		shared.Start(ctx.Done())
		var running sync.WaitGroup
		running.Go(func() { names.Run(ctx) })
		running.Go(func() { proxy.Run(ctx) })
		return func() {
			running.Wait()
			shared.Shutdown()
		}, nil
	})
}

// apiServerFor is the API server's address as Pods reach it: the Service's
// where cluster IPs work, else the port on loopback that Pods share.
func (c *Cluster) apiServerFor(pods network.Network) string {
	if pods.ClusterIPs() {
		return netip.AddrPortFrom(c.plan.Services.Masked().Addr().Next(), 443).String()
	}
	return c.address
}

// nodeServer answers the API server on behalf of kubectl logs and exec.
func (c *Cluster) nodeServer(cfg Config, backend server.Backend) (*server.Server, error) {
	if err := c.keys.server(pairKubelet, "127.0.0.1", cfg.NodeName); err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(c.keys.file(pairKubelet), c.keys.file(pairKubelet))
	if err != nil {
		return nil, fmt.Errorf("cannot read the node's certificate: %w", err)
	}
	serverConfig := server.Default()
	serverConfig.NodeName = cfg.NodeName
	serverConfig.Backend = backend
	serverConfig.Certificate = pair
	serverConfig.Authority = c.keys.pool()
	serverConfig.Clients = []string{apiServerUser}
	serverConfig.Log = klog.Background().WithName("node-server")
	return server.New(serverConfig)
}

// waitNodeReady returns when the node may be given Pods.
func waitNodeReady(ctx context.Context, kube kubernetes.Interface, name string) error {
	err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, nodeReady, true, func(ctx context.Context) (bool, error) {
		n, err := kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil && ready(n), err
	})
	if err != nil {
		return fmt.Errorf("the node is not ready: %w", err)
	}
	return nil
}

func ready(n *corev1.Node) bool {
	if len(n.Spec.Taints) > 0 {
		return false
	}
	for _, condition := range n.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
