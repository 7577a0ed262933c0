// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"

	"diwan.dev/diwan/internal/platform/node"
	"diwan.dev/diwan/internal/platform/node/image"
	"diwan.dev/diwan/internal/platform/node/network"
	"diwan.dev/diwan/internal/testing/clustertest"
)

var cluster clustertest.Shared

func TestMain(m *testing.M) {
	if args := os.Getenv(ownerEnv); args != "" {
		if err := own(strings.Fields(args)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(cluster.Run(m))
}

// images maps every image to the host.
type images struct{}

func (images) Resolve(name string, hasCommand, _ bool) (*image.Environment, error) {
	if !hasCommand {
		return nil, &image.UnmappedError{Image: name}
	}
	return &image.Environment{Image: name, ID: "host"}, nil
}

func (images) Entry(string) *image.Entry {
	return &image.Entry{Image: "*", Runtime: image.RuntimeProcess}
}

// bench is a node of a test on the shared cluster.
type bench struct {
	t         *testing.T
	client    kubernetes.Interface
	namespace string
	cfg       node.Config
	stop      func()
}

func newBench(t *testing.T, change func(*node.Config)) *bench {
	t.Helper()
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
	t.Cleanup(func() { os.RemoveAll(home) })
	b := &bench{t: t, client: client, namespace: namespace, cfg: node.DefaultConfig(home)}
	b.cfg.NodeName = "node-" + namespace
	b.cfg.Client = client
	b.cfg.Images = images{}
	b.cfg.StopGrace = time.Second
	b.cfg.DiskCheck = 50 * time.Millisecond
	if change != nil {
		change(&b.cfg)
	}
	b.start()
	t.Cleanup(func() {
		b.deleteAll()
		b.stop()
		client.CoreV1().Nodes().Delete(context.Background(), b.cfg.NodeName, metav1.DeleteOptions{})
	})
	return b
}

// start starts the node, for the first time or again.
func (b *bench) start() {
	b.t.Helper()
	plan, err := network.PlanFor(filepath.Dir(b.cfg.Dir))
	if err != nil {
		b.t.Fatal(err)
	}
	connect := network.Default(plan)
	connect.Mode = network.Loopback
	net, err := network.New(connect)
	if err != nil {
		b.t.Fatal(err)
	}
	cfg := b.cfg
	cfg.Network = net
	n, err := node.New(cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	b.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			b.t.Errorf("the node ended with %v", err)
		}
		net.Close()
	})
}

// deleteAll deletes the Pods and waits until they are gone.
func (b *bench) deleteAll() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	grace := int64(0)
	pods := b.client.CoreV1().Pods(b.namespace)
	pods.DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &grace}, metav1.ListOptions{})
	b.awaitNoState()
}

// awaitNoState waits until the node has let go of all Pods.
func (b *bench) awaitNoState() {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if left, _ := filepath.Glob(filepath.Join(b.cfg.Dir, "pods", "*-*")); len(left) == 0 {
			return
		}
	}
	b.t.Error("the state of Pods that ended is left")
}

// awaitFile waits until a file is there.
func (b *bench) awaitFile(path string) {
	b.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		}
	}
	b.t.Fatalf("%s is not made", filepath.Base(path))
}

// pod is a Pod that runs script in one container.
func (b *bench) pod(script string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "pod-", Namespace: b.namespace},
		Spec: corev1.PodSpec{
			NodeName: b.cfg.NodeName, RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{Name: "main", Image: "any", Command: []string{"sh", "-c", script}}},
		},
	}
}

func (b *bench) create(pod *corev1.Pod) *corev1.Pod {
	b.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		got, err := b.client.CoreV1().Pods(b.namespace).Create(b.t.Context(), pod, metav1.CreateOptions{})
		if err == nil {
			return got
		}
		if !apierrors.IsForbidden(err) || time.Now().After(deadline) { // the service account is being made
			b.t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// await watches the Pod until ok, and returns it with the number of its versions.
func (b *bench) await(pod *corev1.Pod, what string, ok func(*corev1.Pod) bool) (*corev1.Pod, int) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	pods := b.client.CoreV1().Pods(b.namespace)
	watch, err := pods.Watch(ctx, metav1.ListOptions{
		ResourceVersion: pod.ResourceVersion, FieldSelector: fields.OneTermEqualSelector("metadata.name", pod.Name).String(),
	})
	if err != nil {
		b.t.Fatal(err)
	}
	defer watch.Stop()
	last, versions := pod, 0
	for event := range watch.ResultChan() {
		p, isPod := event.Object.(*corev1.Pod)
		if !isPod {
			continue
		}
		versions++
		last = p
		if event.Type == "DELETED" {
			last = nil
		}
		if ok(last) {
			return last, versions
		}
		if last == nil {
			break
		}
	}
	b.t.Fatalf("the Pod does not become %s; its status: %+v", what, last.Status)
	return nil, 0
}

func (b *bench) awaitPhase(pod *corev1.Pod, phase corev1.PodPhase) *corev1.Pod {
	b.t.Helper()
	got, _ := b.await(pod, string(phase), func(p *corev1.Pod) bool { return p != nil && p.Status.Phase == phase })
	return got
}

func (b *bench) log(pod *corev1.Pod, name string, attempt int) string {
	b.t.Helper()
	text, err := os.ReadFile(filepath.Join(b.cfg.LogDir, b.namespace, pod.Name, name, fmt.Sprint(attempt)+".log"))
	if err != nil {
		b.t.Error(err)
	}
	return string(text)
}

// awaitLog waits until a log has text.
func (b *bench) awaitLog(pod *corev1.Pod, name string, attempt int, text string) {
	b.t.Helper()
	path := filepath.Join(b.cfg.LogDir, b.namespace, pod.Name, name, fmt.Sprint(attempt)+".log")
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if have, _ := os.ReadFile(path); strings.Contains(string(have), text) {
			return
		}
	}
	have, _ := os.ReadFile(path)
	b.t.Fatalf("the log of %s does not have %q; it has %q", name, text, have)
}
