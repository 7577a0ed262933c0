// SPDX-License-Identifier: Apache-2.0

// Package metrics counts experiments and trials for Prometheus, by Katib's names.
package metrics

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
)

// Metrics counts the outcomes of experiments and trials, by namespace. Each
// counter has Katib's name.
type Metrics struct {
	ExperimentsCreated, ExperimentsDeleted, ExperimentsSucceeded, ExperimentsFailed *prometheus.CounterVec

	TrialsCreated, TrialsDeleted, TrialsSucceeded, TrialsFailed, TrialsMetricsUnavailable *prometheus.CounterVec
}

// NewMetrics registers the metrics. The numbers of current experiments and
// trials are read from objects at each scrape. Where the metrics are already
// registered, by another manager in this process, those are used.
func NewMetrics(registerer prometheus.Registerer, objects client.Reader) (*Metrics, error) {
	m := &Metrics{}
	for _, c := range []struct {
		counter    **prometheus.CounterVec
		name, help string
	}{
		{&m.ExperimentsCreated, "katib_experiment_created_total", "The total number of created experiments"},
		{&m.ExperimentsDeleted, "katib_experiment_deleted_total", "The total number of deleted experiments"},
		{&m.ExperimentsSucceeded, "katib_experiment_succeeded_total", "The total number of succeeded experiments"},
		{&m.ExperimentsFailed, "katib_experiment_failed_total", "The total number of failed experiments"},
		{&m.TrialsCreated, "katib_trial_created_total", "The total number of created trials"},
		{&m.TrialsDeleted, "katib_trial_deleted_total", "The total number of deleted trials"},
		{&m.TrialsSucceeded, "katib_trial_succeeded_total", "The total number of succeeded trials"},
		{&m.TrialsFailed, "katib_trial_failed_total", "The total number of failed trials"},
		{&m.TrialsMetricsUnavailable, "katib_trial_metrics_unavailable_total", "The total number of metrics unavailable trials"},
	} {
		counter, err := register(registerer,
			prometheus.NewCounterVec(prometheus.CounterOpts{Name: c.name, Help: c.help}, []string{"namespace"}))
		if err != nil {
			return nil, fmt.Errorf("cannot register metric %s: %w", c.name, err)
		}
		*c.counter = counter
	}
	if _, err := register(registerer, newCurrent(objects)); err != nil {
		return nil, fmt.Errorf("cannot register the metrics of current objects: %w", err)
	}
	return m, nil
}

// register registers c, or returns what is already registered.
func register[C prometheus.Collector](registerer prometheus.Registerer, c C) (C, error) {
	err := registerer.Register(c)
	var already prometheus.AlreadyRegisteredError
	if errors.As(err, &already) {
		if existing, ok := already.ExistingCollector.(C); ok {
			return existing, nil
		}
	}
	return c, err
}

// current reports how many objects there are by their last condition.
type current struct {
	objects             client.Reader
	experiments, trials *prometheus.Desc
}

func newCurrent(objects client.Reader) *current {
	labels := []string{"namespace", "status"}
	return &current{
		objects:     objects,
		experiments: prometheus.NewDesc("katib_experiments_current", "The number of current katib experiments in the cluster", labels, nil),
		trials:      prometheus.NewDesc("katib_trials_current", "The number of current katib trials in the cluster", labels, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *current) Describe(descs chan<- *prometheus.Desc) {
	descs <- c.experiments
	descs <- c.trials
}

// group is what current counts by.
type group struct{ namespace, status string }

func groupOf(namespace string, conditions v1beta1.Conditions) group {
	if status := conditions.Last(); status != "" {
		return group{namespace, string(status)}
	}
	return group{namespace, "Unknown"}
}

// Collect implements prometheus.Collector. A cache that is not ready has
// nothing to report.
func (c *current) Collect(metrics chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var experiments v1beta1.ExperimentList
	if c.objects.List(ctx, &experiments, client.UnsafeDisableDeepCopy) == nil {
		counts := map[group]int{}
		for i := range experiments.Items {
			counts[groupOf(experiments.Items[i].Namespace, experiments.Items[i].Status.Conditions)]++
		}
		send(metrics, c.experiments, counts)
	}
	var trials v1beta1.TrialList
	if c.objects.List(ctx, &trials, client.UnsafeDisableDeepCopy) == nil {
		counts := map[group]int{}
		for i := range trials.Items {
			counts[groupOf(trials.Items[i].Namespace, trials.Items[i].Status.Conditions)]++
		}
		send(metrics, c.trials, counts)
	}
}

func send(metrics chan<- prometheus.Metric, desc *prometheus.Desc, counts map[group]int) {
	for g, n := range counts {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(n), g.namespace, g.status)
	}
}
