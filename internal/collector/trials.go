// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/observation"
)

// FromReader returns the Trials that a Kubernetes client or cache reads.
func FromReader(r client.Reader) Trials { return reader{r} }

type reader struct{ client.Reader }

func (r reader) Spec(ctx context.Context, t observation.Trial) (*Spec, bool, error) {
	var trial v1beta1.Trial
	err := r.Get(ctx, client.ObjectKey{Namespace: t.Namespace, Name: t.Name}, &trial)
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	return SpecOf(&trial), true, nil
}

// SpecOf returns what is to be collected of a trial.
func SpecOf(trial *v1beta1.Trial) *Spec {
	s := &Spec{
		Trial:     observation.Trial{Namespace: trial.Namespace, Name: trial.Name},
		Kind:      StdOut,
		Container: trial.Spec.PrimaryContainerName,
		PodLabels: trial.Spec.PrimaryPodLabels,
	}
	if o := trial.Spec.Objective; o != nil {
		s.Metrics = append([]string{o.ObjectiveMetricName}, o.AdditionalMetricNames...)
	}
	if c := trial.Spec.MetricsCollector.Collector; c != nil && c.Kind != "" {
		s.Kind = Kind(c.Kind)
	}
	if s.Kind == File {
		s.Path = v1beta1.DefaultFilePath
	}
	source := trial.Spec.MetricsCollector.Source
	if source == nil {
		return s
	}
	if source.Filter != nil {
		s.Filters = source.Filter.MetricsFormat
	}
	if file := source.FileSystemPath; file != nil && s.Kind == File {
		s.Format = Format(file.Format)
		if file.Path != "" {
			s.Path = file.Path
		}
	}
	return s
}
