// SPDX-License-Identifier: Apache-2.0

// Package retention is a small domain, for the page about adding one: a Retention
// deletes the experiments of its namespace some time after they have ended.
//
// +groupName=example.com
// +versionName=v1
// +kubebuilder:object:generate=true
package retention

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the kind.
var GroupVersion = schema.GroupVersion{Group: "example.com", Version: "v1"}

// Retention says how long experiments of its namespace stay.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced
type Retention struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec RetentionSpec `json:"spec"`
}

// RetentionSpec is what the user wants.
type RetentionSpec struct {
	// After is how long an experiment stays that has ended, such as 24h.
	After metav1.Duration `json:"after"`
}

// RetentionList is a list of Retentions.
//
// +kubebuilder:object:root=true
type RetentionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Retention `json:"items"`
}

// AddToScheme makes the kind known to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Retention{}, &RetentionList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
