// SPDX-License-Identifier: Apache-2.0

package laptop

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/observation"
)

// lostSample bounds the trials that are looked for in the store at a start.
const lostSample = 20

// lostMetrics says that a store is not the one that trials with values reported
// to, or "" where it has the metrics of one of them, or there are none.
func lostMetrics(ctx context.Context, trials []v1beta1.Trial, store observation.Store) (string, error) {
	var lost []observation.Trial
	for i := range trials {
		t := &trials[i]
		if t.Status.Observation == nil || len(t.Status.Observation.Metrics) == 0 {
			continue
		}
		name := observation.Trial{Namespace: t.Namespace, Name: t.Name}
		if lost = append(lost, name); len(lost) > lostSample {
			continue
		}
		points, err := store.Points(ctx, name, observation.Query{Limit: 1})
		if err != nil || len(points) > 0 {
			return "", err
		}
	}
	if len(lost) == 0 {
		return "", nil
	}
	return fmt.Sprintf("the observation store has no metrics of the %d trials that have values, such as %s; lost are their curves, and what early stopping learns from them; the values in their status are kept. "+
		"If the metrics are in another store, stop diwan and name it with --store; if not, restore the store from a copy, or go on without them", len(lost), lost[0]), nil
}

// notice is what the user should know of metrics that the store should have.
func notice(ctx context.Context, trials client.Reader, store observation.Store) (string, error) {
	var all v1beta1.TrialList
	if err := trials.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("cannot list trials: %w", err)
	}
	return lostMetrics(ctx, all.Items, store)
}
