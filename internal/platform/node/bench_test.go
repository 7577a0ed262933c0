// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"diwan.dev/diwan/internal/platform/node"
	"diwan.dev/diwan/internal/platform/node/network"
)

// BenchmarkPods runs short Pods to their end, 50 at a time, through the API.
func BenchmarkPods(b *testing.B) {
	c, namespace := cluster.Namespace(b)
	config := c.RESTConfig()
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		b.Fatal(err)
	}
	home, err := os.MkdirTemp("", "diwan-node-")
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(home)
	plan, err := network.PlanFor(home)
	if err != nil {
		b.Fatal(err)
	}
	net, err := network.New(network.Default(plan))
	if err != nil {
		b.Fatal(err)
	}
	defer net.Close()
	cfg := node.DefaultConfig(home)
	cfg.NodeName, cfg.Client, cfg.Images, cfg.Network = "bench-"+namespace, client, images{}, net
	n, err := node.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- n.Run(ctx) }()
	defer func() { cancel(); <-ended }()

	pods := client.CoreV1().Pods(namespace)
	watch, err := pods.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer watch.Stop()
	done := make(chan bool, 1<<16)
	go func() {
		for event := range watch.ResultChan() {
			if p, ok := event.Object.(*corev1.Pod); ok && p.Status.Phase == corev1.PodSucceeded && event.Type == "MODIFIED" {
				done <- true
			}
		}
	}()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "pod-", Namespace: namespace},
		Spec: corev1.PodSpec{
			NodeName: cfg.NodeName, RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{Name: "main", Image: "any", Command: []string{"sh", "-c", "echo loss=0.1"}, WorkingDir: filepath.Dir(home)}},
		},
	}
	begun := 0
	create := func() {
		if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			b.Fatal(err)
		}
		begun++
	}
	for i := 0; b.Loop(); i++ {
		if begun-i < 50 {
			create()
		} else {
			<-done
			create()
		}
	}
}
