// SPDX-License-Identifier: Apache-2.0

package v1beta1

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// TrialTemplate specifies what one trial runs.
// +kubebuilder:pruning:PreserveUnknownFields
type TrialTemplate struct {
	// Keep the run object and its Pods after the trial has ended.
	Retain bool `json:"retain,omitempty"`

	// How many seconds one run of a trial may take. A trial that takes longer
	// fails. No limit if empty. Not in Katib.
	TimeLimitSeconds *int64 `json:"timeLimitSeconds,omitempty"`

	// How often a failed run of a trial is retried, with the same parameters,
	// before the trial counts as failed. Not in Katib.
	MaxRetryCount int32 `json:"maxRetryCount,omitempty"`

	TrialSource `json:",inline"`

	// The names that the template uses as ${trialParameters.<name>}, and what
	// they refer to.
	TrialParameters []TrialParameterSpec `json:"trialParameters,omitempty"`

	// Labels of the Pods whose metrics count. Default: all Pods of the run.
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

// TrialSource is the source of the template: exactly one field is set.
type TrialSource struct {
	// The template itself: any object with apiVersion and kind, with
	// ${trialParameters.<name>} in place of values.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	TrialSpec *unstructured.Unstructured `json:"trialSpec,omitempty"`

	// A ConfigMap with the template.
	ConfigMap *ConfigMapSource `json:"configMap,omitempty"`

	// No template: programs ask for trials and run them. Not in Katib.
	External *ExternalTrials `json:"external,omitempty"`
}

// ConfigMapSource names a template in a ConfigMap.
// +kubebuilder:pruning:PreserveUnknownFields
type ConfigMapSource struct {
	// The ConfigMap's name.
	ConfigMapName string `json:"configMapName,omitempty"`

	// The ConfigMap's namespace.
	ConfigMapNamespace string `json:"configMapNamespace,omitempty"`

	// The key of the template in the ConfigMap's data.
	TemplatePath string `json:"templatePath,omitempty"`
}

// TrialParameterSpec is one name that the template uses.
// +kubebuilder:pruning:PreserveUnknownFields
type TrialParameterSpec struct {
	// The name, used in the template as ${trialParameters.<name>}.
	Name string `json:"name,omitempty"`

	// A human-readable description.
	Description string `json:"description,omitempty"`

	// The parameter whose value it takes, or a property of the trial:
	// ${trialSpec.Name}, ${trialSpec.Namespace}, ${trialSpec.Kind},
	// ${trialSpec.APIVersion}, ${trialSpec.Annotations[key]} or
	// ${trialSpec.Labels[key]}.
	Reference string `json:"reference,omitempty"`
}
