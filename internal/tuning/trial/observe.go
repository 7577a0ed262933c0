// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"fmt"
	"slices"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/observation"
)

// observe reads a trial's metrics. A metric that it has not reported is
// unavailable; if it has reported nothing at all, the result is nil.
func observe(ctx context.Context, store observation.Store, t *v1beta1.Trial) (*v1beta1.Observation, error) {
	if t.Spec.Objective == nil {
		return nil, nil
	}
	points, err := store.Points(ctx, observation.Trial{Namespace: t.Namespace, Name: t.Name}, observation.Query{})
	if err != nil {
		return nil, fmt.Errorf("cannot read the observation of trial %s/%s: %w", t.Namespace, t.Name, err)
	}
	if len(points) == 0 {
		return nil, nil
	}
	return tabulate(t.Spec.Objective, observation.Summarize(points)), nil
}

// tabulate lists the summary of each metric that the objective names, the
// objective metric first.
func tabulate(objective *v1beta1.ObjectiveSpec, summaries map[string]observation.Summary) *v1beta1.Observation {
	o := &v1beta1.Observation{}
	for _, name := range metricNames(objective) {
		s, ok := summaries[name]
		if !ok {
			s = observation.Summary{Min: observation.Unavailable, Max: observation.Unavailable, Latest: observation.Unavailable}
		}
		o.Metrics = append(o.Metrics, v1beta1.Metric{Name: name, Min: s.Min, Max: s.Max, Latest: s.Latest})
	}
	return o
}

// metricNames are the metrics that the objective names, and those that have a
// strategy, each once.
func metricNames(objective *v1beta1.ObjectiveSpec) []string {
	names := objective.MetricNames()
	for _, s := range objective.MetricStrategies {
		if !slices.Contains(names, s.Name) {
			names = append(names, s.Name)
		}
	}
	return names
}
