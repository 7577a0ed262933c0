// SPDX-License-Identifier: Apache-2.0

package laptop

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	logsapi "k8s.io/component-base/logs/api/v1"

	"diwan.dev/diwan/internal/platform/domain"
	"diwan.dev/diwan/internal/platform/metricsapi"
	"diwan.dev/diwan/internal/platform/node"
	"diwan.dev/diwan/internal/platform/node/image"
	"diwan.dev/diwan/internal/platform/node/network"
	"diwan.dev/diwan/observation"
	"diwan.dev/diwan/observation/stores"
)

// Cluster is a running local cluster. Stop ends it.
type Cluster struct {
	home   Home
	keys   *pki
	plan   network.Plan
	tokens tokens
	// address is the API server's, host:port.
	address  string
	within   inProcess
	network  atomic.Pointer[network.Network] // once the node starts
	metrics  metricsapi.API
	config   *rest.Config
	owner    string // the bearer token of the home's owner
	wings    []Wing
	images   *image.Table
	registry Registry
	stops    []func()
	failed   chan error
}

// Start owns the home and starts everything in it. It returns when the
// cluster accepts experiments and its node runs Pods. ErrInUse: another
// process owns the home, use Join.
func Start(ctx context.Context, cfg Config) (_ *Cluster, err error) {
	owned, err := cfg.Home.lock()
	if err != nil {
		return nil, err
	}
	c := &Cluster{home: cfg.Home, failed: make(chan error, 1), owner: rand.Text()}
	c.onStop(func() { owned.Unlock() })
	defer func() {
		if err != nil {
			c.Stop()
		}
	}()
	before := debug.SetGCPercent(startGrowth)
	c.onStop(func() { debug.SetGCPercent(before) })
	progress := cfg.Progress
	if progress == nil {
		progress = func(string) {}
	}
	if err := checkLoopback(ctx); err != nil {
		return nil, err
	}
	logs, err := redirectLogs(cfg.Home.Path("diwan.log"))
	if err != nil {
		return nil, err
	}
	c.onStop(logs)
	logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged

	// Before anything slow: until it listens, another program could have its port.
	if err := c.startRegistry(ctx, progress); err != nil {
		return nil, err
	}
	// To fail fast if the store cannot be opened.
	store, err := c.openStore(ctx, cfg, progress)
	if err != nil {
		return nil, err
	}
	if err := c.startControlPlane(ctx, cfg, store, progress); err != nil {
		return nil, err
	}
	return c, c.background(ctx, func(ctx context.Context) (func(), error) {
		return c.supervise(ctx, func(ctx context.Context) error {
			paceMemory(ctx)
			return nil
		}), nil
	})
}

// storeRetry is how long a database server that does not answer is left alone.
const storeRetry = 500 * time.Millisecond

// openStore opens the observation store. It waits for a database server that does
// not answer yet: where the machine has just started, both start at the same time.
func (c *Cluster) openStore(ctx context.Context, cfg Config, progress func(string)) (observation.Store, error) {
	database, err := stores.Open(ctx, cmp.Or(cfg.Store, "sqlite:"+cfg.Home.Path("observations.db")))
	for said := ""; errors.Is(err, observation.ErrUnavailable); {
		if text := err.Error(); text != said {
			progress("waiting for the database: " + text)
			said = text
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(storeRetry):
		}
		database, err = stores.Open(ctx, cmp.Or(cfg.Store, "sqlite:"+cfg.Home.Path("observations.db")))
	}
	if err != nil {
		return nil, err
	}
	store := observation.Announce(database)
	c.onStop(func() {
		if err := store.Close(); err != nil {
			c.fail(err)
		}
	})
	return store, nil
}

// startControlPlane starts everything, first to last.
func (c *Cluster) startControlPlane(ctx context.Context, cfg Config, store observation.Store, progress func(string)) error {
	var err error
	if c.plan, err = network.PlanFor(string(cfg.Home)); err != nil {
		return err
	}
	if c.keys, err = openPKI(cfg.Home.Path("pki"), time.Now); err != nil {
		return err
	}
	if err := c.keys.client(pairAdmin, "diwan", "system:masters"); err != nil {
		return err
	}
	if c.tokens, err = newTokens(cfg.Home.Path("pki", "tokens.csv")); err != nil {
		return err
	}
	if err := c.openWings(cfg, store); err != nil {
		return err
	}
	if err := checkPorts(); err != nil {
		return err
	}
	listener, err := cfg.Home.listen(cfg.Port)
	if err != nil {
		return err
	}
	c.address = listener.Addr().String()
	api, err := c.startStorage(ctx, cfg, listener, progress)
	if err != nil {
		listener.Close()
		return err
	}
	progress("starting the API server")
	if err = ctx.Err(); err == nil {
		err = c.startAPIServer(api)
	}
	if err != nil {
		api.cancel()
		listener.Close()
		return err
	}
	c.onStop(func() { api.stop(c.tokens.byUser[operatorUser]) })
	c.within = api.within
	if err := writeKubeconfig(cfg.Home, api.url, c.keys); err != nil {
		return err
	}
	if c.config, err = clientConfig(cfg.Home); err != nil {
		return err
	}
	if err := api.waitReady(ctx, c.config, almostReadyPath); err != nil {
		return err
	}
	go func() {
		<-api.done
		c.fail(fmt.Errorf("kube-apiserver ended: %w", errors.Join(api.err, errors.New("see "+cfg.Home.Path("diwan.log")))))
	}()
	if err := c.startComponents(ctx, cfg, progress); err != nil {
		return err
	}
	return api.waitReady(ctx, c.config, readyPath)
}

// openWings creates the wings, and opens the image table with their built-in images.
func (c *Cluster) openWings(cfg Config, store observation.Store) (err error) {
	if cfg.Wings != nil {
		lent := &Lent{
			Home: cfg.Home, Store: store, Memory: cfg.Store == "memory:", Owner: c.owner, Authority: c.keys.authority(),
			DialService: c.dialService, DialPod: c.dialPod,
		}
		if c.wings, err = cfg.Wings(lent); err != nil {
			return err
		}
	}
	var builtIn []image.Entry
	for _, w := range c.wings {
		builtIn = append(builtIn, w.Images...)
	}
	c.images, err = image.Open(image.Default(string(cfg.Home), builtIn...))
	return err
}

// domains returns the wings' domains.
func (c *Cluster) domains() []domain.Domain {
	var domains []domain.Domain
	for _, w := range c.wings {
		if w.Domain != nil {
			domains = append(domains, *w.Domain)
		}
	}
	return domains
}

// decorators returns the wings' decorators.
func (c *Cluster) decorators() []node.Decorator {
	var all []node.Decorator
	for _, w := range c.wings {
		all = append(all, w.Decorators...)
	}
	return all
}

// startStorage starts etcd, and meanwhile configures the API server.
func (c *Cluster) startStorage(ctx context.Context, cfg Config, listener net.Listener, progress func(string)) (*apiServer, error) {
	progress("starting etcd")
	etcd, err := newEtcd(cfg.Home.Path("etcd"), cfg.Home.Path("diwan.log"))
	if err != nil {
		return nil, err
	}
	c.onStop(etcd.stop)
	var starting errgroup.Group
	starting.Go(func() error { return etcd.start(ctx) })
	api, err := c.configureAPIServer(ctx, listener, etcd.endpoint)
	if failure := starting.Wait(); failure != nil && err == nil {
		api.cancel()
		err = failure
	}
	return api, err
}

// fail reports that a part of the cluster ended; the first report counts.
func (c *Cluster) fail(err error) {
	select {
	case c.failed <- err:
	default:
	}
}

// Failed yields an error when a part of the cluster ends by itself.
func (c *Cluster) Failed() <-chan error { return c.failed }

// RESTConfig is the owner's way in. Each call returns a copy.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.config) }

// Home is the home that the cluster runs on.
func (c *Cluster) Home() Home { return c.home }

// Stop ends everything, last to first, and gives the home up. Containers get
// SIGTERM and the grace of the Config; they run again at the next start.
func (c *Cluster) Stop() {
	for len(c.stops) > 0 {
		last := c.stops[len(c.stops)-1]
		c.stops = c.stops[:len(c.stops)-1]
		last()
	}
}

func (c *Cluster) onStop(f func()) { c.stops = append(c.stops, f) }

// background runs start with a context that ends at Stop.
func (c *Cluster) background(ctx context.Context, start func(context.Context) (wait func(), err error)) error {
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	wait, err := start(run)
	if err != nil {
		cancel()
		return err
	}
	c.onStop(func() {
		cancel()
		wait()
	})
	return nil
}

// Join returns the way into the cluster that another process runs on home.
func Join(home Home) (*rest.Config, error) {
	if home.Owner() == 0 {
		return nil, fmt.Errorf("no local cluster runs on %s: start one with `diwan up`", home)
	}
	if err := home.trusted(); err != nil {
		return nil, err // its kubeconfig may name a program to run
	}
	return clientConfig(home)
}

// clientConfig reads the home's kubeconfig. Its clients are not throttled:
// the server is on the same machine and says itself when it has enough.
func clientConfig(home Home) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", home.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", home.Kubeconfig(), err)
	}
	config.QPS = -1
	config.UserAgent = "diwan"
	return config, nil
}

func writeKubeconfig(home Home, server string, keys *pki) error {
	pair, err := os.ReadFile(keys.file(pairAdmin))
	if err != nil {
		return fmt.Errorf("cannot read the owner's certificate: %w", err)
	}
	const name = "diwan"
	text, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: server, CertificateAuthorityData: keys.authority()}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {ClientCertificateData: pair, ClientKeyData: pair}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name, Namespace: "default"}},
		CurrentContext: name,
	})
	if err != nil {
		return fmt.Errorf("cannot write the kubeconfig: %w", err)
	}
	return writeFile(home.Kubeconfig(), text, 0o600)
}
