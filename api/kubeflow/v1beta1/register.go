// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group and Version name this API in manifests: "kubeflow.org/v1beta1".
const (
	Group   = "kubeflow.org"
	Version = "v1beta1"
)

// The kinds of this API, as written in a manifest's kind.
const (
	ExperimentKind = "Experiment"
	SuggestionKind = "Suggestion"
	TrialKind      = "Trial"
)

// GroupVersion is the group and version of every kind in this package.
var GroupVersion = schema.GroupVersion{Group: Group, Version: Version}

// AddToScheme registers the kinds of this package in a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&Experiment{}, &ExperimentList{},
		&Suggestion{}, &SuggestionList{},
		&Trial{}, &TrialList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
