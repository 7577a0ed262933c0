// SPDX-License-Identifier: Apache-2.0

// Package clustertest gives the tests of a package a real local cluster, which is the
// program `diwan up`: test binaries link no more than clients of it.
//
// A process can start one cluster, so the tests of a package share it, each
// in its own namespace:
//
//	var cluster clustertest.Shared
//
//	func TestMain(m *testing.M) { os.Exit(cluster.Run(m)) }
//
//	func TestSomething(t *testing.T) {
//		t.Parallel()
//		c, namespace := cluster.Namespace(t)
//		…
//	}
package clustertest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"diwan.dev/diwan/internal/platform/node/rootless"
	"diwan.dev/diwan/internal/testing/program"
)

// Shared is a cluster for all tests of a package. It starts when the first
// test asks for it.
type Shared struct {
	// Args are more arguments of `diwan up`.
	Args []string

	once    sync.Once
	cluster *Cluster
	err     error
}

// Run runs the tests and then stops the cluster, if one was started. It returns
// the exit code. Like diwan itself, it first re-executes the program in a user
// namespace if an ordinary user runs it.
func (s *Shared) Run(m *testing.M) int {
	_ = rootless.Enter(nil) // what needs it says so: rootlesstest.NeedNamespaces
	code := m.Run()
	if s.cluster == nil {
		return code
	}
	if err := s.cluster.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "diwan up:", err)
		code = max(code, 1)
	}
	if code != 0 {
		fmt.Fprintln(os.Stderr, "the cluster's home is kept for inspection:", s.cluster.home)
	} else if err := os.RemoveAll(s.cluster.home); err != nil {
		fmt.Fprintln(os.Stderr, "cannot remove the cluster's home:", err)
		return 1
	}
	return code
}

// Cluster returns the cluster, and starts it the first time.
func (s *Shared) Cluster(t testing.TB) *Cluster {
	t.Helper()
	s.once.Do(func() { s.cluster, s.err = start(s.Args) })
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.cluster
}

// Namespace returns the cluster and a new namespace in it.
func (s *Shared) Namespace(t testing.TB) (*Cluster, string) {
	t.Helper()
	c := s.Cluster(t)
	return c, Namespace(t, c.RESTConfig())
}

// Namespace makes a new namespace in a cluster, which is deleted with all it holds
// when the test ends.
func Namespace(t testing.TB, config *rest.Config) string {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	namespace, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("cannot create a namespace: %v", err)
	}
	t.Cleanup(func() {
		if err := client.CoreV1().Namespaces().Delete(context.Background(), namespace.Name, metav1.DeleteOptions{}); err != nil {
			t.Errorf("cannot delete namespace %s: %v", namespace.Name, err)
		}
	})
	return namespace.Name
}

// Cluster is a running cluster.
type Cluster struct {
	home   string
	config *rest.Config
	shell  *exec.Cmd
	alive  io.Closer // while it is open, the cluster runs
}

// RESTConfig is the owner's way in. Each call returns a copy.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.config) }

// Kubeconfig is the path of the owner's kubeconfig.
func (c *Cluster) Kubeconfig() string { return filepath.Join(c.home, "kubeconfig") }

// Store is the path of the observation store.
func (c *Cluster) Store() string { return filepath.Join(c.home, "observations.db") }

// untilEOF runs a program until its own input ends, as it also does when the test
// binary is killed. Only the program holds its output.
const untilEOF = `"$@" & exec >&-; read -r _; kill $! 2>/dev/null; wait $!`

func start(args []string) (_ *Cluster, err error) {
	diwan, err := program.Build("cmd/diwan")
	if err != nil {
		return nil, err
	}
	c := &Cluster{}
	if c.home, err = os.MkdirTemp("", "diwan-test-"); err != nil {
		return nil, err
	}
	// Tests name images that nobody has: what they run are programs of this machine.
	if err := os.WriteFile(filepath.Join(c.home, "images.yaml"), []byte("images: [{image: '*', runtime: process}]\n"), 0o600); err != nil {
		return nil, err
	}
	c.shell = exec.Command("sh", "-c", untilEOF, "sh", diwan, "up", "--quiet", "--home", c.home)
	c.shell.Args = append(c.shell.Args, args...)
	c.shell.Stderr = os.Stderr
	if c.alive, err = c.shell.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.shell.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.shell.Start(); err != nil {
		return nil, err
	}
	// A quiet diwan prints one line: the kubeconfig's path, when the cluster is ready.
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return nil, fmt.Errorf("diwan up ended before it was ready: %w", errors.Join(err, c.stop()))
	}
	if c.config, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig()); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	c.config.QPS = -1
	return c, nil
}

// stop ends the cluster and waits for its end.
func (c *Cluster) stop() error {
	return errors.Join(c.alive.Close(), c.shell.Wait())
}
