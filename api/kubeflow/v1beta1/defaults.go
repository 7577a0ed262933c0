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

// Queries for the conditions of run objects, by how their kinds report that they ended.
const (
	QueryComplete  = `status.conditions.#(type=="Complete")#|#(status=="True")#`
	QuerySucceeded = `status.conditions.#(type=="Succeeded")#|#(status=="True")#`
	QueryFailed    = `status.conditions.#(type=="Failed")#|#(status=="True")#`
)

// RunDefaults are the defaults of a template whose run object is of a kind.
type RunDefaults struct {
	Kind schema.GroupVersionKind
	// SuccessCondition and FailureCondition are the queries by which objects of the
	// kind have succeeded or failed.
	SuccessCondition, FailureCondition string
	// PrimaryPodLabels are those of the Pod that reports. Empty: all of its Pods.
	PrimaryPodLabels map[string]string
}

// jobDefaults are those of the kind that every cluster has.
var jobDefaults = RunDefaults{
	Kind: schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, SuccessCondition: QueryComplete, FailureCondition: QueryFailed,
}

// SetDefaults fills in unset fields. It never overwrites a field and is
// idempotent. Templates that run a Job get its conditions, others those of runs.
func (e *Experiment) SetDefaults(runs ...RunDefaults) {
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
		s.TrialTemplate.setDefaults(append(runs, jobDefaults))
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
// explicit.
func (t *TrialTemplate) setDefaults(runs []RunDefaults) {
	if t.TrialSpec == nil {
		return
	}
	known := runDefaults(t.TrialSpec.GroupVersionKind(), runs)
	if known == nil {
		return
	}
	if t.SuccessCondition == "" {
		t.SuccessCondition = known.SuccessCondition
	}
	if t.FailureCondition == "" {
		t.FailureCondition = known.FailureCondition
	}
	if len(t.PrimaryPodLabels) == 0 {
		t.PrimaryPodLabels = maps.Clone(known.PrimaryPodLabels)
	}
}

// runDefaults are those of a kind, nil if there are none. Katib goes by the
// kind's name alone: so does this where no version of it is known.
func runDefaults(kind schema.GroupVersionKind, runs []RunDefaults) *RunDefaults {
	named := -1
	for i, r := range runs {
		if r.Kind == kind {
			return &runs[i]
		}
		if r.Kind.Kind == kind.Kind && named < 0 {
			named = i
		}
	}
	if named < 0 {
		return nil
	}
	return &runs[named]
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
