// SPDX-License-Identifier: Apache-2.0

// Package nodeobserver joins the collector to the node that runs Pods as
// processes: the one knows nothing of the other.
package nodeobserver

import (
	"context"

	"diwan.dev/diwan/internal/platform/node"
	"diwan.dev/diwan/internal/tuning/collector"
)

// For returns the observers of the containers whose metrics c collects.
func For(c *collector.Collector) node.Observers { return observers{c} }

type observers struct{ collector *collector.Collector }

// Observe implements [node.Observers].
func (o observers) Observe(ctx context.Context, s node.Subject) (node.Observer, error) {
	observer, err := o.collector.Observe(ctx, collector.Subject(s))
	if observer == nil {
		return nil, err // and not an interface of another type that holds nil
	}
	return observer, err
}
