// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ModelKind is the kind of a Model.
const ModelKind = "Model"

// Model is a name under which a namespace keeps versions of a model.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Versions",type=integer,JSONPath=`.status.versions`
// +kubebuilder:printcolumn:name="Latest",type=integer,JSONPath=`.status.latestVersion`
// +kubebuilder:printcolumn:name="Aliases",type=string,JSONPath=`.spec.aliases`
// +kubebuilder:printcolumn:name="Resolved",type=string,JSONPath=`.status.conditions[?(@.type=="Resolved")].status`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Model struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec ModelSpec `json:"spec,omitempty"`
	// +optional
	Status ModelStatus `json:"status,omitempty"`
}

// ModelSpec is what the user wants of a model.
type ModelSpec struct {
	// What the model is for.
	// +optional
	// +kubebuilder:validation:MaxLength=5000
	Description string `json:"description,omitempty"`

	// Names for versions, such as champion: 3. Whoever reads model://NAME@champion gets
	// that version. "latest" always means the newest version, and cannot be set.
	// +optional
	// +kubebuilder:validation:MaxProperties=100
	Aliases map[string]int64 `json:"aliases,omitempty"`

	// How many versions remain, the newest. Older ones are deleted, unless an alias names
	// them, they are in stage Staging or Production, or something still uses them. Default: all.
	// +optional
	// +kubebuilder:validation:Minimum=1
	KeepVersions *int32 `json:"keepVersions,omitempty"`

	// Notes of any kind.
	// +optional
	// +kubebuilder:validation:MaxProperties=200
	Tags map[string]string `json:"tags,omitempty"`
}

// ModelResolved is the condition that each alias names a version that exists.
const ModelResolved = "Resolved"

// Reasons of ModelResolved.
const (
	ReasonAliasesResolved = "AliasesResolved"
	ReasonVersionMissing  = "VersionMissing"
)

// ModelStatus is what is known of a model.
type ModelStatus struct {
	// The generation that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// How many versions exist.
	// +optional
	Versions int32 `json:"versions,omitempty"`

	// The newest version that exists; 0 if none does.
	// +optional
	LatestVersion int64 `json:"latestVersion,omitempty"`

	// The highest number that a version ever had. Numbers are not used again.
	// +optional
	HighestVersion int64 `json:"highestVersion,omitempty"`

	// Whether each alias names a version that exists.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ModelList is a list of Models.
//
// +kubebuilder:object:root=true
type ModelList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Model `json:"items"`
}
