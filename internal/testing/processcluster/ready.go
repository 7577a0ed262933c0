// SPDX-License-Identifier: Apache-2.0

package processcluster

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// until asks until ok, the parts live, and ctx lasts.
func (c *Cluster) until(ctx context.Context, what string, ok func() error) error {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := ok()
		if err == nil {
			return nil
		}
		for _, p := range c.parts {
			if ended := p.ended(); ended != nil {
				return fmt.Errorf("cannot wait for %s: %w", what, ended)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("cannot wait for %s: %w: %w", what, ctx.Err(), err)
		case <-ticker.C:
		}
	}
}

// waitServing returns when the API server says that it is ready.
func (c *Cluster) waitServing(ctx context.Context) error {
	config, err := c.keys.config(admin)
	if err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	return c.until(ctx, "the API server", func() error {
		response, err := client.Get(config.Host + "/readyz")
		if err != nil {
			return err
		}
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("it answers %d", response.StatusCode)
		}
		return nil
	})
}

// WaitServing returns when the API server, which was killed, serves again.
func (c *Cluster) WaitServing() {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	if err := c.waitServing(ctx); err != nil {
		c.t.Fatal(err)
	}
}

func (c *Cluster) client() (kubernetes.Interface, error) {
	config, err := c.keys.config(admin)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// WaitNode returns when a node, which was added or killed, may be given Pods.
func (c *Cluster) WaitNode(node Part) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	if err := c.waitNode(ctx, node); err != nil {
		c.t.Fatal(err)
	}
}

// waitNode returns when a node may be given Pods.
func (c *Cluster) waitNode(ctx context.Context, node Part) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	return c.until(ctx, string(node), func() error {
		n, err := client.CoreV1().Nodes().Get(ctx, string(node), metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, taint := range n.Spec.Taints {
			if strings.HasPrefix(taint.Key, "node.kubernetes.io/") {
				return fmt.Errorf("it has the taints %v", n.Spec.Taints)
			}
		}
		for _, condition := range n.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("it is not ready: %v", n.Status.Conditions)
	})
}

// waitAccounts returns when Pods can be made: they need a service account.
func (c *Cluster) waitAccounts(ctx context.Context) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	return c.until(ctx, "kube-controller-manager", func() error {
		_, err := client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}
