// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"maps"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
)

// newTrial returns the complete trial of one assignment: it has its finalizer
// from the start, so that no further write is needed.
func newTrial(e *v1beta1.Experiment, a *v1beta1.TrialAssignment, index int, run *unstructured.Unstructured) *v1beta1.Trial {
	labels := map[string]string{}
	maps.Copy(labels, e.Labels)
	maps.Copy(labels, a.Labels)
	labels[v1beta1.LabelExperiment] = e.Name
	template := e.Spec.TrialTemplate
	t := &v1beta1.Trial{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       e.Namespace,
			Name:            a.Name,
			Labels:          labels,
			Annotations:     map[string]string{v1beta1.AnnotationTrialIndex: strconv.Itoa(index)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(e, v1beta1.GroupVersion.WithKind(v1beta1.ExperimentKind))},
			Finalizers:      []string{v1beta1.FinalizerCleanMetrics},
		},
		Spec: v1beta1.TrialSpec{
			Objective:            e.Spec.Objective,
			ParameterAssignments: a.ParameterAssignments,
			RunSpec:              run,
			External:             template.External,
			RetainRun:            template.Retain,
			PrimaryPodLabels:     template.PrimaryPodLabels,
			PrimaryContainerName: template.PrimaryContainerName,
			SuccessCondition:     template.SuccessCondition,
			FailureCondition:     template.FailureCondition,
			Labels:               a.Labels,
			TimeLimitSeconds:     template.TimeLimitSeconds,
			MaxRetryCount:        template.MaxRetryCount,
		},
	}
	if e.Spec.EarlyStopping != nil {
		t.Spec.EarlyStoppingRules = a.EarlyStoppingRules
	}
	if e.Spec.MetricsCollectorSpec != nil {
		t.Spec.MetricsCollector = *e.Spec.MetricsCollectorSpec
	}
	return t
}
