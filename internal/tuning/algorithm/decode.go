// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	kubeflow "diwan.dev/diwan/api/kubeflow/v1beta1"
	manager "diwan.dev/diwan/api/manager/v1beta1"
)

// ExperimentOf decodes an experiment. Its UID, which messages lack, is its
// name.
func ExperimentOf(m *manager.Experiment) *kubeflow.Experiment {
	spec := m.GetSpec()
	e := &kubeflow.Experiment{ObjectMeta: metav1.ObjectMeta{Name: m.GetName(), UID: types.UID(m.GetName())}}
	e.Spec = kubeflow.ExperimentSpec{
		Parameters:         parametersOf(spec.GetParameterSpecs().GetParameters()),
		Objective:          objectiveOf(spec.GetObjective()),
		ParallelTrialCount: count(spec.GetParallelTrialCount()),
		MaxTrialCount:      count(spec.GetMaxTrialCount()),
		NasConfig:          nasConfigOf(spec.GetNasConfig()),
		EarlyStopping:      EarlyStoppingOf(spec.GetEarlyStopping()),
	}
	if a := spec.GetAlgorithm(); a != nil {
		e.Spec.Algorithm = &kubeflow.AlgorithmSpec{AlgorithmName: a.GetAlgorithmName(), AlgorithmSettings: SettingsOf(a)}
	}
	return e
}

// SettingsOf reads an algorithm's settings.
func SettingsOf(a *manager.AlgorithmSpec) []kubeflow.AlgorithmSetting {
	var settings []kubeflow.AlgorithmSetting
	for _, s := range a.GetAlgorithmSettings() {
		settings = append(settings, kubeflow.AlgorithmSetting{Name: s.GetName(), Value: s.GetValue()})
	}
	return settings
}

// EarlyStoppingOf decodes an early stopping specification, nil for nil.
func EarlyStoppingOf(m *manager.EarlyStoppingSpec) *kubeflow.EarlyStoppingSpec {
	if m == nil {
		return nil
	}
	spec := &kubeflow.EarlyStoppingSpec{AlgorithmName: m.GetAlgorithmName()}
	for _, s := range m.GetAlgorithmSettings() {
		spec.AlgorithmSettings = append(spec.AlgorithmSettings, kubeflow.EarlyStoppingSetting{Name: s.GetName(), Value: s.GetValue()})
	}
	return spec
}

// RulesOf decodes early stopping rules.
func RulesOf(messages []*manager.EarlyStoppingRule) []kubeflow.EarlyStoppingRule {
	var rules []kubeflow.EarlyStoppingRule
	for _, m := range messages {
		rules = append(rules, kubeflow.EarlyStoppingRule{
			Name: m.GetName(), Value: m.GetValue(), StartStep: int(m.GetStartStep()),
			Comparison: toObject(comparisons, m.GetComparison()),
		})
	}
	return rules
}

// Rules encodes early stopping rules.
func Rules(rules []kubeflow.EarlyStoppingRule) []*manager.EarlyStoppingRule {
	var messages []*manager.EarlyStoppingRule
	for _, r := range rules {
		messages = append(messages, &manager.EarlyStoppingRule{
			Name: r.Name, Value: r.Value, StartStep: int32(r.StartStep), Comparison: toMessage(comparisons, r.Comparison),
		})
	}
	return messages
}

func count(n int32) *int32 {
	if n <= 0 {
		return nil
	}
	return &n
}

func objectiveOf(m *manager.ObjectiveSpec) *kubeflow.ObjectiveSpec {
	if m == nil {
		return nil
	}
	return &kubeflow.ObjectiveSpec{
		Type: toObject(objectiveTypes, m.GetType()), Goal: ptr.To(m.GetGoal()),
		ObjectiveMetricName: m.GetObjectiveMetricName(), AdditionalMetricNames: m.GetAdditionalMetricNames(),
	}
}

func parametersOf(messages []*manager.ParameterSpec) []kubeflow.ParameterSpec {
	var specs []kubeflow.ParameterSpec
	for _, m := range messages {
		s := m.GetFeasibleSpace()
		specs = append(specs, kubeflow.ParameterSpec{
			Name: m.GetName(), ParameterType: toObject(parameterTypes, m.GetParameterType()),
			FeasibleSpace: kubeflow.FeasibleSpace{
				Max: s.GetMax(), Min: s.GetMin(), List: s.GetList(), Step: s.GetStep(),
				Distribution: toObject(distributions, s.GetDistribution()),
			},
		})
	}
	return specs
}

func nasConfigOf(m *manager.NasConfig) *kubeflow.NasConfig {
	if m == nil {
		return nil
	}
	g := m.GetGraphConfig()
	c := &kubeflow.NasConfig{GraphConfig: kubeflow.GraphConfig{
		NumLayers: count(g.GetNumLayers()), InputSizes: g.GetInputSizes(), OutputSizes: g.GetOutputSizes(),
	}}
	for _, o := range m.GetOperations().GetOperation() {
		c.Operations = append(c.Operations, kubeflow.Operation{
			OperationType: o.GetOperationType(), Parameters: parametersOf(o.GetParameterSpecs().GetParameters()),
		})
	}
	return c
}

// TrialOf decodes a trial. Its observation has the single value of each metric
// in the message; an unknown time is nil.
func TrialOf(m *manager.Trial) *kubeflow.Trial {
	t := &kubeflow.Trial{ObjectMeta: metav1.ObjectMeta{Name: m.GetName()}}
	t.Spec.Objective, t.Spec.Labels = objectiveOf(m.GetSpec().GetObjective()), m.GetSpec().GetLabels()
	t.Spec.ParameterAssignments = AssignmentsOf(m.GetSpec().GetParameterAssignments().GetAssignments())
	status := m.GetStatus()
	t.Status.StartTime, t.Status.CompletionTime = timeOf(status.GetStartTime()), timeOf(status.GetCompletionTime())
	if c := toObject(conditions, status.GetCondition()); c != "" {
		t.Status.Conditions.Set(metav1.Time{}, c, corev1.ConditionTrue, "", "")
	}
	for _, metric := range status.GetObservation().GetMetrics() {
		if t.Status.Observation == nil {
			t.Status.Observation = &kubeflow.Observation{}
		}
		v := metric.GetValue()
		t.Status.Observation.Metrics = append(t.Status.Observation.Metrics, kubeflow.Metric{Name: metric.GetName(), Min: v, Max: v, Latest: v})
	}
	return t
}

// AssignmentsOf reads the values of parameters.
func AssignmentsOf(messages []*manager.ParameterAssignment) []kubeflow.ParameterAssignment {
	var assignments []kubeflow.ParameterAssignment
	for _, m := range messages {
		assignments = append(assignments, kubeflow.ParameterAssignment{Name: m.GetName(), Value: m.GetValue()})
	}
	return assignments
}

func timeOf(text string) *metav1.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil
	}
	return &metav1.Time{Time: t}
}
