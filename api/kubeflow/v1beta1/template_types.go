// SPDX-License-Identifier: Apache-2.0

package v1beta1

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// TrialTemplate says what one run of the tuned program is.
// +kubebuilder:pruning:PreserveUnknownFields
type TrialTemplate struct {
	// Keep the run object, and with it its Pods, after the trial has ended.
	Retain bool `json:"retain,omitempty"`

	// How many seconds one run of a trial may take. A trial that takes longer
	// fails. No bound when empty. Not a field of Katib's.
	TimeLimitSeconds *int64 `json:"timeLimitSeconds,omitempty"`

	// How often a trial whose run failed runs again, with the same parameters,
	// before it counts as failed. Not a field of Katib's.
	MaxRetryCount int32 `json:"maxRetryCount,omitempty"`

	TrialSource `json:",inline"`

	// The names that the template uses as ${trialParameters.<name>}, and what
	// each stands for.
	TrialParameters []TrialParameterSpec `json:"trialParameters,omitempty"`

	// Labels of the Pods whose metrics count. All Pods of the run when empty.
	PrimaryPodLabels map[string]string `json:"primaryPodLabels,omitempty"`

	// The container that does the training, whose metrics are collected.
	PrimaryContainerName string `json:"primaryContainerName,omitempty"`

	// When the run object has succeeded, as a GJSON query on it. For a Job the
	// default is status.conditions.#(type=="Complete")#|#(status=="True")#
	SuccessCondition string `json:"successCondition,omitempty"`

	// When the run object has failed, as a GJSON query on it. For a Job the
	// default is status.conditions.#(type=="Failed")#|#(status=="True")#
	FailureCondition string `json:"failureCondition,omitempty"`
}

// TrialSource is where the template is: exactly one of its fields is set.
type TrialSource struct {
	// The template itself: any object with apiVersion and kind, in which
	// ${trialParameters.<name>} stands for values.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	TrialSpec *unstructured.Unstructured `json:"trialSpec,omitempty"`

	// A ConfigMap that holds the template.
	ConfigMap *ConfigMapSource `json:"configMap,omitempty"`

	// There is no template: programs ask for trials and run them. Not a field of
	// Katib's.
	External *ExternalTrials `json:"external,omitempty"`
}

// ConfigMapSource names a template in a ConfigMap.
// +kubebuilder:pruning:PreserveUnknownFields
type ConfigMapSource struct {
	// The ConfigMap's name.
	ConfigMapName string `json:"configMapName,omitempty"`

	// The ConfigMap's namespace.
	ConfigMapNamespace string `json:"configMapNamespace,omitempty"`

	// The key in the ConfigMap's data under which the template is.
	TemplatePath string `json:"templatePath,omitempty"`
}

// TrialParameterSpec is one name that the template uses.
// +kubebuilder:pruning:PreserveUnknownFields
type TrialParameterSpec struct {
	// The name, used in the template as ${trialParameters.<name>}.
	Name string `json:"name,omitempty"`

	// What it is, for people.
	Description string `json:"description,omitempty"`

	// The parameter whose value it takes, or a property of the trial:
	// ${trialSpec.Name}, ${trialSpec.Namespace}, ${trialSpec.Kind},
	// ${trialSpec.APIVersion}, ${trialSpec.Annotations[key]} or
	// ${trialSpec.Labels[key]}.
	Reference string `json:"reference,omitempty"`
}
