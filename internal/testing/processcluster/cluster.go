// SPDX-License-Identifier: Apache-2.0

package processcluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"diwan.dev/diwan/internal/platform/node/image"
	"diwan.dev/diwan/internal/platform/node/network"
	"diwan.dev/diwan/internal/testing/freeport"
	"diwan.dev/diwan/internal/testing/program"
)

// Config configures a cluster.
type Config struct {
	// Images say what container images stand for on the node.
	Images []image.Entry
	// Controllers are arguments for kube-controller-manager, beside the usual.
	Controllers []string
}

// Cluster is a running cluster. It stops when the test ends.
type Cluster struct {
	t       testing.TB
	cfg     Config
	program string // that is every part
	dir     string
	address string // of the API server
	plan    network.Plan
	keys    *keys
	parts   map[Part]*process
	images  sync.Mutex // what Map changes
}

// New starts a cluster and returns when its node takes Pods. Without the rights
// of root on Linux the test is skipped.
func New(t testing.TB, cfg Config) *Cluster {
	t.Helper()
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		t.Skip("a cluster of processes needs Linux and the rights of root, for the addresses of its Services")
	}
	kube, err := program.Build("internal/testing/processcluster/kube")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "diwan-cluster-")
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{t: t, cfg: cfg, program: kube, dir: dir, parts: map[Part]*process{}}
	t.Cleanup(c.stop)
	if err := c.prepare(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := c.startAll(ctx); err != nil {
		t.Fatal(err)
	}
	return c
}

// prepare writes what the parts find at their start.
func (c *Cluster) prepare() error {
	var err error
	if c.address, err = freeport.Address(); err != nil { // also while the API server is away
		return err
	}
	if c.plan, err = network.PlanFor(c.path("node")); err != nil {
		return err
	}
	if err := os.Mkdir(c.path("etcd"), 0o700); err != nil {
		return err
	}
	if c.keys, err = newKeys(c.dir, "https://"+c.address, c.plan.Services); err != nil {
		return err
	}
	return c.furnish(Node)
}

// furnish writes a node's image mappings.
func (c *Cluster) furnish(node Part) error {
	// Tests name images that nobody has: what they run are programs of this machine.
	entries := append(slices.Clone(c.cfg.Images), image.Entry{Image: "*", Runtime: image.RuntimeProcess})
	images, err := yaml.Marshal(map[string]any{"images": entries})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.home(node), 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.home(node), "images.yaml"), images, 0o600)
}

// AddNode adds SecondNode, a machine with its own Pods, and returns when it accepts
// them. Its Node may already exist, for example with taints. Cluster IPs work as long
// as the first node lives.
func (c *Cluster) AddNode() {
	c.t.Helper()
	if err := errors.Join(c.furnish(SecondNode), c.start(SecondNode)); err != nil {
		c.t.Fatal(err)
	}
	c.WaitNode(SecondNode)
}

// startAll starts the parts, first to last.
func (c *Cluster) startAll(ctx context.Context) error {
	if err := c.start(Etcd); err != nil {
		return err
	}
	if err := c.start(APIServer); err != nil {
		return err
	}
	if err := c.waitServing(ctx); err != nil {
		return err
	}
	for _, part := range []Part{ControllerManager, Scheduler, Node} {
		if err := c.start(part); err != nil {
			return err
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.waitNode(ctx, Node) })
	group.Go(func() error { return c.waitAccounts(ctx) })
	return group.Wait()
}

// stop ends the parts, last to first, so that the node can end its containers.
func (c *Cluster) stop() {
	var errs []error
	for _, part := range []Part{SecondNode, Node, Scheduler, ControllerManager, APIServer, Etcd} {
		if p := c.parts[part]; p != nil {
			errs = append(errs, p.end())
		}
	}
	errs = append(errs, c.leftovers())
	if err := errors.Join(errs...); err != nil {
		c.t.Error(err)
	}
	if c.t.Failed() {
		c.t.Logf("the cluster's directory is kept for inspection: %s", c.dir)
		return
	}
	if err := os.RemoveAll(c.dir); err != nil {
		c.t.Error(err)
	}
}

// Admin is the administrator's way in.
func (c *Cluster) Admin() *rest.Config { return c.config(admin) }

// Kubeconfig is the path of the administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return c.keys.kubeconfig(admin) }

// User creates a kubeconfig for a user with their own certificate, and
// returns its path and content. RBAC decides what they may do.
func (c *Cluster) User(name string, groups ...string) (kubeconfig string, config *rest.Config) {
	c.t.Helper()
	if err := c.keys.user(name, groups...); err != nil {
		c.t.Fatal(err)
	}
	return c.keys.kubeconfig(name), c.config(name)
}

// Map maps an image on the first node from now on.
func (c *Cluster) Map(entry image.Entry) {
	c.t.Helper()
	c.images.Lock()
	defer c.images.Unlock()
	if err := image.Map(filepath.Join(c.home(Node), "images.yaml"), entry); err != nil {
		c.t.Fatal(err)
	}
}

// Gateway is an address of this machine that Pods reach.
func (c *Cluster) Gateway() string { return c.plan.Gateway().String() }

// Log is the path of a component's log.
func (c *Cluster) Log(part Part) string { return c.path(string(part) + ".log") }

// ContainerLogs is the directory of what containers of the first node print:
// <namespace>/<pod>/<container>/<attempt>.log.
func (c *Cluster) ContainerLogs() string { return c.path("node", "logs") }

func (c *Cluster) path(elements ...string) string {
	return filepath.Join(append([]string{c.dir}, elements...)...)
}

func (c *Cluster) config(user string) *rest.Config {
	c.t.Helper()
	config, err := c.keys.config(user)
	if err != nil {
		c.t.Fatal(err)
	}
	return config
}

func (c *Cluster) port() string { return strconv.Itoa(int(portOf(c.address))) }
