// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Defaults of an experiment.
const (
	// DefaultParallelTrialCount is how many trials may run at the same time.
	DefaultParallelTrialCount int32 = 3
	// DefaultResumePolicy lets an experiment end for good.
	DefaultResumePolicy = NeverResume
)

// Conditions of run objects, by how their kinds report that they ended.
const (
	conditionComplete  = `status.conditions.#(type=="Complete")#|#(status=="True")#`
	conditionSucceeded = `status.conditions.#(type=="Succeeded")#|#(status=="True")#`
	conditionFailed    = `status.conditions.#(type=="Failed")#|#(status=="True")#`
)

// SetDefaults fills in what the user left out. What is set stays, and setting
// defaults again changes nothing.
func (e *Experiment) SetDefaults() {
	s := &e.Spec
	if s.ParallelTrialCount == nil {
		n := DefaultParallelTrialCount
		s.ParallelTrialCount = &n
	}
	if s.ResumePolicy == "" {
		s.ResumePolicy = DefaultResumePolicy
	}
	for i := range s.Parameters {
		if s.Parameters[i].FeasibleSpace.Distribution == "" {
			s.Parameters[i].FeasibleSpace.Distribution = DistributionUniform
		}
	}
	if s.Objective != nil {
		s.Objective.setDefaults()
	}
	if s.TrialTemplate != nil {
		s.TrialTemplate.setDefaults()
	}
	if s.MetricsCollectorSpec == nil {
		s.MetricsCollectorSpec = &MetricsCollectorSpec{}
		if s.TrialTemplate != nil && s.TrialTemplate.External != nil {
			s.MetricsCollectorSpec.Collector = &CollectorSpec{Kind: PushCollector}
		}
	}
	s.MetricsCollectorSpec.setDefaults()
}

// setDefaults gives every metric a strategy: the one that is best for the
// direction of the objective.
func (o *ObjectiveSpec) setDefaults() {
	strategy := o.Type.strategy()
	has := make(map[string]bool, len(o.MetricStrategies))
	for i := range o.MetricStrategies {
		m := &o.MetricStrategies[i]
		if m.Value == "" {
			m.Value = strategy
		}
		has[m.Name] = true
	}
	add := func(metric string, value MetricStrategyType) {
		if !has[metric] {
			has[metric] = true
			o.MetricStrategies = append(o.MetricStrategies, MetricStrategy{Name: metric, Value: value})
		}
	}
	add(o.ObjectiveMetricName, strategy)
	for _, a := range o.AdditionalObjectives {
		add(a.MetricName, a.Type.strategy())
	}
	for _, c := range o.Constraints {
		add(c.MetricName, ExtractByLatest)
	}
	for _, metric := range o.AdditionalMetricNames {
		add(metric, strategy)
	}
}

// setDefaults fills in the conditions and Pod labels of run kinds that are
// known. A template in a ConfigMap is not read here, so its conditions must be
// written out.
func (t *TrialTemplate) setDefaults() {
	if t.TrialSpec == nil {
		return
	}
	success, primary := runDefaults(t.TrialSpec.GroupVersionKind())
	if success == "" {
		return
	}
	if t.SuccessCondition == "" {
		t.SuccessCondition = success
	}
	if t.FailureCondition == "" {
		t.FailureCondition = conditionFailed
	}
	if len(t.PrimaryPodLabels) == 0 {
		t.PrimaryPodLabels = maps.Clone(primary)
	}
}

// runDefaults are, of a known kind, the query by which its objects have
// succeeded and the labels of the Pod that reports; "" for another kind. Katib
// goes by the kind's name alone.
func runDefaults(kind schema.GroupVersionKind) (success string, primary map[string]string) {
	switch kind.Kind {
	case "Job":
		return conditionComplete, nil
	case "TrainJob":
		return conditionComplete, map[string]string{
			"jobset.sigs.k8s.io/replicatedjob-name":    "node",
			"batch.kubernetes.io/job-completion-index": "0",
		}
	case "JAXJob", "MXJob": // the first has no master, of the second it is a server, which learns nothing
		return conditionSucceeded, map[string]string{
			"training.kubeflow.org/replica-type":  "worker",
			"training.kubeflow.org/replica-index": "0",
		}
	case "MPIJob":
		if kind.Version == "v2beta1" {
			return conditionSucceeded, map[string]string{"training.kubeflow.org/job-role": "launcher"}
		}
		return conditionSucceeded, map[string]string{"training.kubeflow.org/job-role": "master"}
	case "TFJob", "PyTorchJob", "XGBoostJob", "PaddleJob":
		return conditionSucceeded, map[string]string{"training.kubeflow.org/job-role": "master"}
	}
	return "", nil
}

func (m *MetricsCollectorSpec) setDefaults() {
	if m.Collector == nil {
		m.Collector = &CollectorSpec{Kind: StdOutCollector}
	}
	switch m.Collector.Kind {
	case PrometheusMetricCollector:
		m.setHTTPDefaults()
	case FileCollector:
		m.setPathDefaults(FileKind, DefaultFilePath)
		if m.Source.FileSystemPath.Format == "" {
			m.Source.FileSystemPath.Format = TextFormat
		}
	case TfEventCollector:
		m.setPathDefaults(DirectoryKind, DefaultTensorflowEventDirPath)
	}
}

func (m *MetricsCollectorSpec) setHTTPDefaults() {
	if m.Source == nil {
		m.Source = &SourceSpec{}
	}
	if m.Source.HttpGet == nil {
		m.Source.HttpGet = &corev1.HTTPGetAction{}
	}
	get := m.Source.HttpGet
	if get.Path == "" {
		get.Path = DefaultPrometheusPath
	}
	if get.Port.String() == "0" {
		get.Port = intstr.FromInt32(DefaultPrometheusPort)
	}
}

func (m *MetricsCollectorSpec) setPathDefaults(kind FileSystemKind, path string) {
	if m.Source == nil {
		m.Source = &SourceSpec{}
	}
	if m.Source.FileSystemPath == nil {
		m.Source.FileSystemPath = &FileSystemPath{}
	}
	p := m.Source.FileSystemPath
	if p.Kind == "" {
		p.Kind = kind
	}
	if p.Path == "" {
		p.Path = path
	}
}
