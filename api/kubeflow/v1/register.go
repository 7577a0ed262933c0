// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group and Version name this API in manifests: "kubeflow.org/v1".
const (
	Group   = "kubeflow.org"
	Version = "v1"
)

// GroupVersion is the group and version of every kind in this package.
var GroupVersion = schema.GroupVersion{Group: Group, Version: Version}

// AddToScheme makes the kinds of this package known to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&TFJob{}, &TFJobList{},
		&PyTorchJob{}, &PyTorchJobList{},
		&MPIJob{}, &MPIJobList{},
		&XGBoostJob{}, &XGBoostJobList{},
		&PaddleJob{}, &PaddleJobList{},
		&JAXJob{}, &JAXJobList{},
		&MXJob{}, &MXJobList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
