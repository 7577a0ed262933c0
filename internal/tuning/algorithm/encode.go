// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kubeflow "diwan.dev/diwan/api/kubeflow/v1beta1"
	manager "diwan.dev/diwan/api/manager/v1beta1"
)

// Experiment writes an experiment. settings are those that its algorithm has
// returned so far; they win over the experiment's own.
func Experiment(e *kubeflow.Experiment, settings []kubeflow.AlgorithmSetting) *manager.Experiment {
	spec := &manager.ExperimentSpec{
		ParameterSpecs:     &manager.ExperimentSpec_ParameterSpecs{Parameters: parameters(e.Spec.Parameters)},
		Objective:          objectiveSpec(e.Spec.Objective),
		ParallelTrialCount: ptr.Deref(e.Spec.ParallelTrialCount, 0),
		MaxTrialCount:      ptr.Deref(e.Spec.MaxTrialCount, 0),
		NasConfig:          nasConfig(e.Spec.NasConfig),
		EarlyStopping:      EarlyStopping(e.Spec.EarlyStopping),
	}
	if a := e.Spec.Algorithm; a != nil {
		spec.Algorithm = &manager.AlgorithmSpec{AlgorithmName: a.AlgorithmName}
		for _, s := range Merge(a.AlgorithmSettings, settings) {
			spec.Algorithm.AlgorithmSettings = append(spec.Algorithm.AlgorithmSettings, &manager.AlgorithmSetting{Name: s.Name, Value: s.Value})
		}
	}
	return &manager.Experiment{Name: e.Name, Spec: spec}
}

// Merge returns settings with others over them, in the order in which their
// names first come.
func Merge(settings, others []kubeflow.AlgorithmSetting) []kubeflow.AlgorithmSetting {
	merged := slices.Clone(settings)
	for _, o := range others {
		i := slices.IndexFunc(merged, func(s kubeflow.AlgorithmSetting) bool { return s.Name == o.Name })
		if i < 0 {
			merged = append(merged, o)
		} else {
			merged[i].Value = o.Value
		}
	}
	return merged
}

// EarlyStopping encodes an early stopping specification, nil for nil.
func EarlyStopping(spec *kubeflow.EarlyStoppingSpec) *manager.EarlyStoppingSpec {
	if spec == nil {
		return nil
	}
	m := &manager.EarlyStoppingSpec{AlgorithmName: spec.AlgorithmName}
	for _, s := range spec.AlgorithmSettings {
		m.AlgorithmSettings = append(m.AlgorithmSettings, &manager.EarlyStoppingSetting{Name: s.Name, Value: s.Value})
	}
	return m
}

func objectiveSpec(o *kubeflow.ObjectiveSpec) *manager.ObjectiveSpec {
	if o == nil {
		return nil
	}
	return &manager.ObjectiveSpec{
		Type:                  toMessage(objectiveTypes, o.Type),
		Goal:                  ptr.Deref(o.Goal, 0),
		ObjectiveMetricName:   o.ObjectiveMetricName,
		AdditionalMetricNames: o.AdditionalMetricNames,
	}
}

func parameters(specs []kubeflow.ParameterSpec) []*manager.ParameterSpec {
	out := make([]*manager.ParameterSpec, len(specs))
	for i, p := range specs {
		s := p.FeasibleSpace
		out[i] = &manager.ParameterSpec{
			Name:          p.Name,
			ParameterType: toMessage(parameterTypes, p.ParameterType),
			FeasibleSpace: &manager.FeasibleSpace{
				Max: s.Max, Min: s.Min, List: s.List, Step: s.Step, Distribution: toMessage(distributions, s.Distribution),
			},
		}
	}
	return out
}

func nasConfig(c *kubeflow.NasConfig) *manager.NasConfig {
	if c == nil {
		return nil
	}
	m := &manager.NasConfig{
		GraphConfig: &manager.GraphConfig{
			NumLayers:  ptr.Deref(c.GraphConfig.NumLayers, 0),
			InputSizes: c.GraphConfig.InputSizes, OutputSizes: c.GraphConfig.OutputSizes,
		},
		Operations: &manager.NasConfig_Operations{},
	}
	for _, o := range c.Operations {
		m.Operations.Operation = append(m.Operations.Operation, &manager.Operation{
			OperationType:  o.OperationType,
			ParameterSpecs: &manager.Operation_ParameterSpecs{Parameters: parameters(o.Parameters)},
		})
	}
	return m
}

// Trials encodes the trials from which an algorithm can learn: like Katib, not
// those of which nothing is known.
func Trials(trials []*kubeflow.Trial) []*manager.Trial {
	var out []*manager.Trial
	for _, t := range trials {
		condition := conditionOf(t)
		if condition == kubeflow.ConditionMetricsUnavailable || condition == kubeflow.ConditionEarlyStopped && t.Status.Observation == nil {
			continue
		}
		m := &manager.Trial{
			Name: t.Name,
			Spec: &manager.TrialSpec{
				Objective:            objectiveSpec(t.Spec.Objective),
				ParameterAssignments: &manager.TrialSpec_ParameterAssignments{},
				Labels:               t.Spec.Labels,
			},
			Status: &manager.TrialStatus{
				StartTime: stamp(t.Status.StartTime), CompletionTime: stamp(t.Status.CompletionTime),
				Condition:   toMessage(conditions, condition),
				Observation: observationOf(t),
			},
		}
		for _, a := range t.Spec.ParameterAssignments {
			m.Spec.ParameterAssignments.Assignments = append(m.Spec.ParameterAssignments.Assignments, &manager.ParameterAssignment{Name: a.Name, Value: a.Value})
		}
		out = append(out, m)
	}
	return out
}

// conditionOf returns the condition that describes a trial's state.
func conditionOf(t *kubeflow.Trial) kubeflow.ConditionType {
	for _, c := range []kubeflow.ConditionType{
		kubeflow.ConditionKilled, kubeflow.ConditionFailed, kubeflow.ConditionEarlyStopped,
		kubeflow.ConditionMetricsUnavailable, kubeflow.ConditionSucceeded, kubeflow.ConditionRunning,
	} {
		if t.Status.Conditions.IsTrue(c) {
			return c
		}
	}
	return kubeflow.ConditionCreated
}

// observationOf is one value of each metric, by its strategy.
func observationOf(t *kubeflow.Trial) *manager.Observation {
	o := &manager.Observation{}
	if t.Status.Observation == nil {
		return o
	}
	for _, m := range t.Status.Observation.Metrics {
		o.Metrics = append(o.Metrics, &manager.Metric{Name: m.Name, Value: m.Value(t.Spec.Objective.Strategy(m.Name, ""))})
	}
	return o
}

func stamp(t *metav1.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
