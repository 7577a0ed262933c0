// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ModelVersionKind is the kind of a ModelVersion.
const ModelVersionKind = "ModelVersion"

// LabelModel is the label of a ModelVersion with the name of its Model.
const LabelModel = "models.diwan.dev/model"

// AnnotationInUse is the prefix of annotations of a ModelVersion by which those who use
// its files keep it: models.diwan.dev/in-use.NAME, whatever the value.
const AnnotationInUse = "models.diwan.dev/in-use."

// ModelVersionName is the name of a version of a model.
func ModelVersionName(model string, version int64) string {
	return fmt.Sprintf("%s-v%d", model, version)
}

// ModelVersion is a version of a model.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Model",type=string,JSONPath=`.spec.model`
// +kubebuilder:printcolumn:name="Version",type=integer,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="Aliases",type=string,JSONPath=`.status.aliases`
// +kubebuilder:printcolumn:name="Stage",type=string,JSONPath=`.spec.stage`
// +kubebuilder:printcolumn:name="Format",type=string,JSONPath=`.spec.content.format`
// +kubebuilder:printcolumn:name="Size",type=integer,JSONPath=`.spec.content.size`
// +kubebuilder:printcolumn:name="By",type=string,JSONPath=`.spec.producer.name`
// +kubebuilder:printcolumn:name="URI",type=string,JSONPath=`.spec.uri`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ModelVersion struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ModelVersionSpec `json:"spec"`
	// +optional
	Status ModelVersionStatus `json:"status,omitempty"`
}

// Stage is how far a version has come.
//
// +kubebuilder:validation:Enum=None;Staging;Production;Archived
type Stage string

// Stages of a version.
const (
	StageNone       Stage = "None"
	StageStaging    Stage = "Staging"
	StageProduction Stage = "Production"
	StageArchived   Stage = "Archived"
)

// ModelVersionSpec says where a version's files are, what they are, and what made them.
// Only its description, stage and tags may change; what is missing may be added.
type ModelVersionSpec struct {
	// The name of the Model, which is made if it is missing.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=200
	Model string `json:"model"`

	// The number of the version.
	// +kubebuilder:validation:Minimum=1
	Version int64 `json:"version"`

	// Where the files are, such as oci://registry.example.com/models/digits@sha256:….
	// +kubebuilder:validation:MaxLength=2000
	URI string `json:"uri"`

	// What the files are.
	// +optional
	Content *Content `json:"content,omitempty"`

	// What made the version.
	// +optional
	Producer *Producer `json:"producer,omitempty"`

	// The version of the same model from which this one was made, by conversion or compression.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Parent *int64 `json:"parent,omitempty"`

	// The revision of the program.
	// +optional
	Code *Code `json:"code,omitempty"`

	// The data that it was made from and measured on.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Data []Data `json:"data,omitempty"`

	// Hyperparameters.
	// +optional
	// +kubebuilder:validation:MaxProperties=1000
	Parameters map[string]string `json:"parameters,omitempty"`

	// Metrics, as numbers in text, such as accuracy: "0.973".
	// +optional
	// +kubebuilder:validation:MaxProperties=1000
	Metrics map[string]string `json:"metrics,omitempty"`

	// What the version is for.
	// +optional
	// +kubebuilder:validation:MaxLength=5000
	Description string `json:"description,omitempty"`

	// How far the version has come. Aliases of the Model say more.
	// +optional
	// +kubebuilder:default=None
	Stage Stage `json:"stage,omitempty"`

	// Notes of any kind.
	// +optional
	// +kubebuilder:validation:MaxProperties=200
	Tags map[string]string `json:"tags,omitempty"`
}

// Content is what a version's files are.
type Content struct {
	// The format, such as onnx or safetensors.
	// +optional
	Format string `json:"format,omitempty"`

	// The framework and its version, such as "pytorch 2.10".
	// +optional
	Framework string `json:"framework,omitempty"`

	// Bytes of all files.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Size int64 `json:"size,omitempty"`

	// The number of parameters (weights).
	// +optional
	// +kubebuilder:validation:Minimum=0
	Parameters int64 `json:"parameters,omitempty"`

	// The inputs, in the model's order.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	Inputs []Tensor `json:"inputs,omitempty"`

	// The outputs, in the model's order.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	Outputs []Tensor `json:"outputs,omitempty"`
}

// Tensor is an input or an output.
type Tensor struct {
	// The name by which the model knows it.
	// +optional
	Name string `json:"name,omitempty"`

	// The type of an element, such as float32.
	// +optional
	Type string `json:"type,omitempty"`

	// The dimensions, outermost first; -1 for one of any size.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Shape []int64 `json:"shape,omitempty"`
}

// Producer is the object that made a version.
type Producer struct {
	// The API group and version of the object, such as kubeflow.org/v1beta1.
	APIVersion string `json:"apiVersion"`

	// The kind of the object, such as Experiment.
	Kind string `json:"kind"`

	// The name of the object.
	Name string `json:"name"`

	// The UID of the object.
	// +optional
	UID string `json:"uid,omitempty"`

	// The trial, if it is an Experiment.
	// +optional
	Trial string `json:"trial,omitempty"`
}

// Code is a revision of a program.
type Code struct {
	// Where the program is kept, such as https://example.com/team/program.git.
	// +optional
	Repository string `json:"repository,omitempty"`

	// A commit, or another name that never means another text.
	Revision string `json:"revision"`
}

// Data is a set of data.
type Data struct {
	// The name of the data.
	Name string `json:"name"`

	// Where the data is.
	// +optional
	URI string `json:"uri,omitempty"`

	// A digest of the data, such as sha256:….
	// +optional
	Digest string `json:"digest,omitempty"`
}

// ModelVersionStatus is what is known of a version.
type ModelVersionStatus struct {
	// The aliases that name the version now, and latest if it is the newest.
	// +optional
	// +listType=set
	Aliases []string `json:"aliases,omitempty"`
}

// ModelVersionList is a list of ModelVersions.
//
// +kubebuilder:object:root=true
type ModelVersionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ModelVersion `json:"items"`
}
