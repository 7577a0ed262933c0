// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/observation"
)

// Trials finds trials.
type Trials interface {
	// Spec returns what is to be collected of a trial. ok is false for a trial
	// that is not there.
	Spec(ctx context.Context, t observation.Trial) (spec *Spec, ok bool, err error)
}

// ErrUnavailable is wrapped by the error of observing a trial whose way of
// collecting metrics this version does not have yet.
var ErrUnavailable = errors.New("not yet available in this version")

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

// Observe returns the stream that takes the metrics of one run of a container,
// numbered from 0, or nil for a container that reports none: one that is not
// the primary container of a Pod that carries its trial's label and the labels
// that the trial counts.
func (c *Collector) Observe(ctx context.Context, pod *corev1.Pod, container string, attempt int) (*Stream, error) {
	name := pod.Labels[v1beta1.LabelTrial]
	if name == "" {
		return nil, nil
	}
	trial := observation.Trial{Namespace: pod.Namespace, Name: name}
	spec, ok, err := c.trials.Spec(ctx, trial)
	if err != nil {
		return nil, fmt.Errorf("cannot find trial %s: %w", trial, err)
	}
	if !ok || !spec.counts(pod, container) {
		return nil, nil
	}
	stream, err := c.stream(ctx, spec, pod, container, attempt)
	if err != nil {
		return nil, fmt.Errorf("cannot collect metrics of trial %s: %w", trial, err)
	}
	return stream, nil
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

func (c *Collector) stream(ctx context.Context, spec *Spec, pod *corev1.Pod, container string, attempt int) (*Stream, error) {
	s := &Stream{config: c.config, store: c.store, trial: spec.Trial, log: klog.FromContext(ctx)}
	switch spec.Kind {
	case None:
		return nil, nil
	case StdOut:
		s.source = fmt.Sprintf("%s/%s/%d", pod.UID, container, attempt)
	case File:
		// A file outlives the runs of its container, and is read on.
		s.source, s.path = fmt.Sprintf("%s/%s%s", pod.UID, container, spec.Path), spec.Path
	default:
		return nil, fmt.Errorf("metrics collector %s is %w: use StdOut or File", spec.Kind, ErrUnavailable)
	}
	parser, breaks, err := spec.parser()
	if err != nil {
		return nil, err
	}
	s.parser, s.lines = parser, lines{breaks: breaks, max: c.config.MaxLine}
	return s, nil
}
