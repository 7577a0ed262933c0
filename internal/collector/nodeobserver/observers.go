// SPDX-License-Identifier: Apache-2.0

// Package nodeobserver joins the collector to the node that runs Pods as
// processes: the one knows nothing of the other.
package nodeobserver

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"diwan.dev/diwan/internal/collector"
	"diwan.dev/diwan/internal/node"
)

// For returns the observers of the containers whose metrics c collects.
func For(c *collector.Collector) node.Observers { return observers{c} }

type observers struct{ collector *collector.Collector }

// Observe implements [node.Observers].
func (o observers) Observe(ctx context.Context, pod *corev1.Pod, container string, attempt int) (node.Observer, error) {
	stream, err := o.collector.Observe(ctx, pod, container, attempt)
	if stream == nil {
		return nil, err // and not an interface that holds a nil stream
	}
	return stream, err
}
