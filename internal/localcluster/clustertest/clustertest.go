// SPDX-License-Identifier: Apache-2.0

// Package clustertest gives the tests of a package a real local cluster.
//
// A process can start one cluster, so the tests of a package share it, each
// in a namespace of its own:
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
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"diwan.dev/diwan/internal/localcluster"
	"diwan.dev/diwan/internal/node/rootless"
)

// Shared is a cluster for all tests of a package. It starts when the first
// test asks for it.
type Shared struct {
	// Config, if set, changes the configuration before the start.
	Config func(*localcluster.Config)

	once    sync.Once
	home    string
	cluster *localcluster.Cluster
	err     error
}

// Run runs the tests and then stops the cluster, if one was started. It
// returns the exit code. As diwan itself, it first executes the program anew in a
// user namespace where an ordinary user runs it.
func (s *Shared) Run(m *testing.M) int {
	_ = rootless.Enter(nil) // what needs it says so: rootlesstest.NeedNamespaces
	code := m.Run()
	if s.cluster != nil {
		s.cluster.Stop()
	}
	if s.home == "" {
		return code
	}
	if code != 0 {
		fmt.Fprintln(os.Stderr, "the cluster's home is kept for inspection:", s.home)
	} else if err := os.RemoveAll(s.home); err != nil {
		fmt.Fprintln(os.Stderr, "cannot remove the cluster's home:", err)
		return 1
	}
	return code
}

// Cluster returns the cluster, and starts it the first time.
func (s *Shared) Cluster(t testing.TB) *localcluster.Cluster {
	t.Helper()
	s.once.Do(s.start)
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.cluster
}

func (s *Shared) start() {
	if s.home, s.err = os.MkdirTemp("", "diwan-test-"); s.err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cfg := localcluster.DefaultConfig(localcluster.Home(s.home))
	cfg.StopGrace = time.Second
	if s.Config != nil {
		s.Config(&cfg)
	}
	s.cluster, s.err = localcluster.Start(ctx, cfg)
}

// Namespace returns the cluster and a new namespace, which is deleted with
// all it holds when the test ends.
func (s *Shared) Namespace(t testing.TB) (*localcluster.Cluster, string) {
	t.Helper()
	c := s.Cluster(t)
	client, err := kubernetes.NewForConfig(c.RESTConfig())
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
	return c, namespace.Name
}
