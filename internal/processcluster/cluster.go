// SPDX-License-Identifier: Apache-2.0

package processcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"diwan.dev/diwan/internal/freeport"
	"diwan.dev/diwan/internal/node/image"
	"diwan.dev/diwan/internal/node/network"
)

// Config says what a cluster is to have.
type Config struct {
	// Program is the path of the program that Build made. Required.
	Program string
	// Images say what container images stand for on the node.
	Images []image.Entry
	// Controllers are arguments for kube-controller-manager, beside the usual.
	Controllers []string
}

// Cluster is a running cluster. It stops when the test ends.
type Cluster struct {
	t       testing.TB
	cfg     Config
	dir     string
	address string // of the API server
	plan    network.Plan
	keys    *keys
	parts   map[Part]*process
}

// Build makes the program that is every part of a cluster, at path.
func Build(ctx context.Context, path string) error {
	// Clients ask the API server which version it is.
	const version = "-X k8s.io/component-base/version.git"
	flags := "-ldflags=-s -w " + version + "Version=v1.37.1 " + version + "Major=1 " + version + "Minor=37"
	cmd := exec.CommandContext(ctx, "go", "build", flags, "-o", path, "diwan.dev/diwan/internal/processcluster/kube")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build the parts of a cluster: %w\n%s", err, out)
	}
	return nil
}

// New starts a cluster and returns when its node takes Pods. Without the rights
// of root on Linux the test is skipped.
func New(t testing.TB, cfg Config) *Cluster {
	t.Helper()
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		t.Skip("a cluster of processes needs Linux and the rights of root, for the addresses of its Services")
	}
	dir, err := os.MkdirTemp("", "diwan-cluster-")
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{t: t, cfg: cfg, dir: dir, parts: map[Part]*process{}}
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

// furnish tells a node what images stand for.
func (c *Cluster) furnish(node Part) error {
	images, err := yaml.Marshal(map[string]any{"images": c.cfg.Images})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.home(node), 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.home(node), "images.yaml"), images, 0o600)
}

// AddNode adds SecondNode, a machine with Pods of its own, and returns when it takes
// them. Its Node may be there before, as with taints. Cluster IPs lead to Pods as long
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

// User makes a kubeconfig for a user with a certificate of their own, and
// returns its path and what is in it. What they may do is for RBAC.
func (c *Cluster) User(name string, groups ...string) (kubeconfig string, config *rest.Config) {
	c.t.Helper()
	if err := c.keys.user(name, groups...); err != nil {
		c.t.Fatal(err)
	}
	return c.keys.kubeconfig(name), c.config(name)
}

// Map says what an image stands for on the first node from now on.
func (c *Cluster) Map(entry image.Entry) {
	c.t.Helper()
	if err := image.Map(filepath.Join(c.home(Node), "images.yaml"), entry); err != nil {
		c.t.Fatal(err)
	}
}

// Gateway is an address of this machine that Pods reach.
func (c *Cluster) Gateway() string { return c.plan.Gateway().String() }

// Log is the path of what a part says.
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
