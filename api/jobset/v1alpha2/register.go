// SPDX-License-Identifier: Apache-2.0

package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group and Version name this API in manifests: "jobset.x-k8s.io/v1alpha2".
const (
	Group   = "jobset.x-k8s.io"
	Version = "v1alpha2"
)

// JobSetKind is the kind of this API, as written in a manifest's kind.
const JobSetKind = "JobSet"

// GroupVersion is the group and version of every kind in this package.
var GroupVersion = schema.GroupVersion{Group: Group, Version: Version}

// AddToScheme makes the kinds of this package known to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &JobSet{}, &JobSetList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
