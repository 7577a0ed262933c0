// SPDX-License-Identifier: Apache-2.0

package optimizationjob

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/api/trainer/v1alpha1"
)

// Where a TrainJob finds its parameters: in variables that begin so, with the
// names in capitals, and in annotations that do.
const (
	variable   = "KUBEFLOW_TRAINER_OPT_"
	annotation = "parameter.trainer.kubeflow.org/"
)

// NewExperiment is the Experiment of a job.
func NewExperiment(job *v1alpha1.OptimizationJob) (*v1beta1.Experiment, error) {
	spec := v1beta1.ExperimentSpec{
		Algorithm:          algorithm(job.Spec.SearchAlgorithm),
		MaxTrialCount:      ptr.To(max(job.Spec.NumTrials, 1)),
		ParallelTrialCount: ptr.To(max(job.Spec.ParallelTrials, 1)),
	}
	for _, o := range job.Spec.Objectives[:min(1, len(job.Spec.Objectives))] {
		spec.Objective = &v1beta1.ObjectiveSpec{Type: v1beta1.ObjectiveTypeMinimize, ObjectiveMetricName: o.Metric}
		if o.Direction == v1alpha1.Maximize {
			spec.Objective.Type = v1beta1.ObjectiveTypeMaximize
		}
	}
	for i := range job.Spec.Parameters {
		p, err := parameter(&job.Spec.Parameters[i])
		if err != nil {
			return nil, err
		}
		spec.Parameters = append(spec.Parameters, p)
	}
	template, err := trialTemplate(job)
	if err != nil {
		return nil, err
	}
	spec.TrialTemplate = template
	return &v1beta1.Experiment{
		ObjectMeta: metav1.ObjectMeta{
			Name: job.Name, Namespace: job.Namespace, Labels: maps.Clone(job.Labels),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, v1alpha1.GroupVersion.WithKind(v1alpha1.OptimizationJobKind))},
		},
		Spec: spec,
	}, nil
}

func algorithm(a *v1alpha1.SearchAlgorithm) *v1beta1.AlgorithmSpec {
	switch {
	case a != nil && a.Grid != nil:
		return &v1beta1.AlgorithmSpec{AlgorithmName: "grid"}
	case a != nil && a.Random != nil && a.Random.Seed != nil:
		return &v1beta1.AlgorithmSpec{AlgorithmName: "random", AlgorithmSettings: []v1beta1.AlgorithmSetting{
			{Name: "random_state", Value: strconv.FormatInt(*a.Random.Seed, 10)},
		}}
	}
	return &v1beta1.AlgorithmSpec{AlgorithmName: "random"}
}

func parameter(p *v1alpha1.Parameter) (v1beta1.ParameterSpec, error) {
	out := v1beta1.ParameterSpec{Name: p.Name}
	space := ptr.Deref(p.SearchSpace, v1alpha1.SearchSpace{})
	switch {
	case space.Categorical != nil:
		out.ParameterType, out.FeasibleSpace.List = v1beta1.ParameterTypeCategorical, space.Categorical.Choices
	case space.Uniform != nil:
		number(&out, space.Uniform, v1beta1.DistributionUniform)
	case space.LogUniform != nil:
		number(&out, space.LogUniform, v1beta1.DistributionLogUniform)
	default:
		return out, fmt.Errorf("parameter %q has no search space", p.Name)
	}
	return out, nil
}

func number(out *v1beta1.ParameterSpec, r *v1alpha1.RangeSpace, d v1beta1.Distribution) {
	out.ParameterType = v1beta1.ParameterTypeDouble
	if r.Type == v1alpha1.Int {
		out.ParameterType = v1beta1.ParameterTypeInt
	}
	out.FeasibleSpace = v1beta1.FeasibleSpace{Min: r.Min, Max: r.Max, Distribution: d}
}

// trialTemplate is the TrainJob of each trial. Those that ended are kept: the
// job's result names one of them.
func trialTemplate(job *v1alpha1.OptimizationJob) (*v1beta1.TrialTemplate, error) {
	out := &v1beta1.TrialTemplate{Retain: true, PrimaryContainerName: v1alpha1.Node}
	trainJob := &v1alpha1.TrainJob{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.TrainJobKind},
		ObjectMeta: metav1.ObjectMeta{
			Labels:      maps.Clone(job.Spec.TrainJobTemplate.Labels),
			Annotations: maps.Clone(job.Spec.TrainJobTemplate.Annotations),
		},
		Spec: *job.Spec.TrainJobTemplate.Spec.DeepCopy(),
	}
	if trainJob.Spec.Trainer == nil {
		trainJob.Spec.Trainer = &v1alpha1.Trainer{}
	}
	if trainJob.Annotations == nil {
		trainJob.Annotations = map[string]string{}
	}
	names := map[string]string{}
	for i, p := range job.Spec.Parameters {
		name := portable(p.Name)
		if other, taken := names[name]; taken {
			return nil, fmt.Errorf("parameters %q and %q would use the same environment variable, %s%s", other, p.Name, variable, name)
		}
		names[name] = p.Name
		reference := "p" + strconv.Itoa(i)
		value := "${trialParameters." + reference + "}"
		out.TrialParameters = append(out.TrialParameters, v1beta1.TrialParameterSpec{Name: reference, Reference: p.Name})
		trainJob.Spec.Trainer.Env = append(trainJob.Spec.Trainer.Env, corev1.EnvVar{Name: variable + name, Value: value})
		trainJob.Annotations[annotation+strings.ToLower(strings.Trim(name, "_"))] = value
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(trainJob)
	if err != nil {
		return nil, fmt.Errorf("cannot encode spec.trainJobTemplate: %w", err)
	}
	delete(object, "status")
	unstructured.RemoveNestedField(object, "metadata", "creationTimestamp")
	out.TrialSpec = &unstructured.Unstructured{Object: object}
	return out, nil
}

// portable is a name as it stands in the name of a variable: in capitals, with
// "_" for what is neither a letter nor a digit.
func portable(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(name))
}
