// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/observation"
)

// SpecOf returns what to collect for a trial.
func SpecOf(trial *v1beta1.Trial) *Spec {
	s := &Spec{
		Trial:     observation.Trial{Namespace: trial.Namespace, Name: trial.Name},
		Kind:      StdOut,
		Container: trial.Spec.PrimaryContainerName,
		PodLabels: trial.Spec.PrimaryPodLabels,
	}
	if o := trial.Spec.Objective; o != nil {
		s.Metrics = o.MetricNames()
	}
	for _, r := range trial.Spec.EarlyStoppingRules {
		if !slices.Contains(s.Metrics, r.Name) {
			s.Metrics = append(s.Metrics, r.Name)
		}
	}
	if c := trial.Spec.MetricsCollector.Collector; c != nil && c.Kind != "" {
		s.Kind = Kind(c.Kind)
	}
	s.read(trial.Spec.MetricsCollector.Source)
	return s
}

// read takes the place and form of the metrics, or the defaults of the kind.
func (s *Spec) read(source *v1beta1.SourceSpec) {
	if source == nil {
		source = &v1beta1.SourceSpec{}
	}
	if source.Filter != nil {
		s.Filters = source.Filter.MetricsFormat
	}
	file := source.FileSystemPath
	if file == nil {
		file = &v1beta1.FileSystemPath{}
	}
	switch s.Kind {
	case File:
		s.Format, s.Path = Format(file.Format), cmp.Or(file.Path, v1beta1.DefaultFilePath)
	case Events:
		s.Path = cmp.Or(file.Path, v1beta1.DefaultTensorflowEventDirPath)
	case Prometheus:
		s.Page = source.HttpGet
		if s.Page == nil {
			s.Page = &corev1.HTTPGetAction{Path: v1beta1.DefaultPrometheusPath, Port: intstr.FromInt32(v1beta1.DefaultPrometheusPort)}
		}
	}
}
