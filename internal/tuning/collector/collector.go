// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/observation"
)

// Trials finds trials.
type Trials interface {
	// Spec returns what to collect for a trial. ok is false for a nonexistent
	// trial.
	Spec(ctx context.Context, t observation.Trial) (spec *Spec, ok bool, err error)
}

// Collector decides which containers report metrics, and makes the streams
// that store them.
type Collector struct {
	trials Trials
	store  observation.Store
	config Config
}

// New returns a collector of the metrics of some trials into a store.
func New(trials Trials, store observation.Store, config Config) *Collector {
	return &Collector{trials, store, config}
}

// Observe returns the observer of one run of a container, or nil for a
// container whose metrics are not read: one that is not the primary container
// of a Pod that carries its trial's label and the labels that the trial counts,
// or of a trial that reports by itself.
func (c *Collector) Observe(ctx context.Context, s Subject) (Observer, error) {
	name := s.Pod.Labels[v1beta1.LabelTrial]
	if name == "" {
		return nil, nil
	}
	trial := observation.Trial{Namespace: s.Pod.Namespace, Name: name}
	spec, ok, err := c.trials.Spec(ctx, trial)
	if err != nil {
		return nil, fmt.Errorf("cannot find trial %s: %w", trial, err)
	}
	if !ok || !spec.counts(s.Pod, s.Container) {
		return nil, nil
	}
	observer, err := c.observer(klog.FromContext(ctx), spec, s)
	if err != nil {
		return nil, fmt.Errorf("cannot collect metrics of trial %s: %w", trial, err)
	}
	return observer, nil
}

// counts reports whether a container is the one that the spec means.
func (s *Spec) counts(pod *corev1.Pod, container string) bool {
	for key, value := range s.PodLabels {
		if pod.Labels[key] != value {
			return false
		}
	}
	return container == s.Container
}

// observer returns what reads the metrics in the spec's way.
func (c *Collector) observer(log klog.Logger, spec *Spec, s Subject) (Observer, error) {
	run := fmt.Sprintf("%s/%s", s.Pod.UID, s.Container)
	stream := func(source string, units framer, parser parser, others *others) *Stream {
		return &Stream{
			config: c.config, store: c.store, trial: spec.Trial, source: source,
			units: units, parser: parser, others: others, warn: s.Warn, log: log,
		}
	}
	switch spec.Kind {
	case None, Custom, Push:
		return nil, nil
	case StdOut:
		units, parser, others, err := spec.lines(c.config.MaxLine)
		if err != nil {
			return nil, err
		}
		return &tail{stream: stream(fmt.Sprintf("%s/%d", run, s.Attempt), units, parser, others), path: s.Output, kept: s.OutputStart}, nil
	case File:
		units, parser, others, err := spec.lines(c.config.MaxLine)
		if err != nil {
			return nil, err
		}
		// A file outlives the runs of its container, and is read on.
		path, own := s.HostPath(spec.Path)
		return &tail{stream: stream(run+spec.Path, units, parser, others), path: path, own: own, within: within(s, own)}, nil
	case Events:
		return c.directory(spec, s, func(file string, units framer, parser parser) *Stream {
			return stream(run+file, units, parser, nil)
		}), nil
	case Prometheus:
		// A page ends with its program: each run is a separate source.
		source := fmt.Sprintf("%s/%d/page", run, s.Attempt)
		return c.scraper(spec, s, stream(source, &lines{breaks: "\n", max: c.config.MaxLine}, &jsonLines{metrics: spec.Metrics}, nil))
	}
	return nil, fmt.Errorf("unknown metrics collector %q", spec.Kind)
}

// stored returns a function that reports whether a trial has points of a
// metric.
func (c *Collector) stored(t observation.Trial) func(ctx context.Context, metric string) (bool, error) {
	return func(ctx context.Context, metric string) (bool, error) {
		points, err := c.store.Points(ctx, t, observation.Query{Metric: metric, Limit: 1})
		return len(points) > 0, err
	}
}
