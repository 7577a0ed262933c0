// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"diwan.dev/diwan/internal/platform/node"
	"diwan.dev/diwan/internal/platform/node/network"
)

// ownerEnv makes the test binary a process that is nothing but a node, so that
// it can be killed: "<kubeconfig> <home> <node name>".
const ownerEnv = "DIWAN_TEST_NODE_OWNER"

func own(args []string) error {
	config, err := clientcmd.BuildConfigFromFlags("", args[0])
	if err != nil {
		return err
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	plan, err := network.PlanFor(args[1])
	if err != nil {
		return err
	}
	net, err := network.New(network.Default(plan))
	if err != nil {
		return err
	}
	cfg := node.DefaultConfig(args[1])
	cfg.NodeName, cfg.Client, cfg.Images, cfg.Network = args[2], client, images{}, net
	n, err := node.New(cfg)
	if err != nil {
		return err
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	return errors.Join(n.Run(ctx), net.Close())
}

// TestKilledNode kills a node with SIGKILL at random moments while Pods run, and
// starts it again. Every program runs to its end, and none runs twice.
func TestKilledNode(t *testing.T) {
	t.Parallel()
	c, namespace := cluster.Namespace(t)
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	home, err := os.MkdirTemp("", "diwan-node-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(home)
	name := "killed-" + namespace
	b := &bench{t: t, client: client, namespace: namespace, cfg: node.DefaultConfig(home)}
	b.cfg.NodeName = name
	const pods, kills = 40, 12
	ran := filepath.Join(t.TempDir(), "ran")

	done, created := make(chan map[string]corev1.PodPhase, 1), make(chan struct{})
	watch, err := client.CoreV1().Pods(namespace).Watch(t.Context(), metav1.ListOptions{FieldSelector: fields.Everything().String()})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	go func() {
		ends := map[string]corev1.PodPhase{}
		for event := range watch.ResultChan() {
			if p, ok := event.Object.(*corev1.Pod); ok && (p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed) {
				if ends[p.Name] = p.Status.Phase; len(ends) == pods {
					done <- ends
					return
				}
			}
		}
	}()
	go func() {
		defer close(created)
		for range pods {
			b.create(b.pod(fmt.Sprintf(`echo start $HOSTNAME >>%[1]s; i=0; while [ $i -lt 20 ]; do sleep 0.02; i=$((i+1)); done; echo end >>%[1]s`, ran)))
		}
	}()
	owner := func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), ownerEnv+"="+strings.Join([]string{c.Kubeconfig(), home, name}, " "))
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range kills {
		cmd := owner()
		time.Sleep(time.Duration(random.IntN(900)) * time.Millisecond) // the moment of the kill, not a wait
		cmd.Process.Kill()
		cmd.Wait()
	}
	last := owner()
	defer func() { last.Process.Signal(syscall.SIGTERM); last.Wait() }()
	<-created
	select {
	case ends := <-done:
		for name, phase := range ends {
			if phase != corev1.PodSucceeded {
				t.Errorf("Pod %s ended as %s", name, phase)
			}
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("the Pods do not end")
	}
	text, _ := os.ReadFile(ran)
	starts, ends := strings.Count(string(text), "start"), strings.Count(string(text), "end\n")
	if starts != pods || ends != pods {
		t.Errorf("%d Pods started %d times and ended %d times", pods, starts, ends)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if left, _ := os.ReadDir(filepath.Join(home, "node", "pods")); len(left) == 0 {
			return
		} else if time.Now().After(deadline) {
			t.Fatalf("state of %d Pods is left", len(left))
		}
	}
}
