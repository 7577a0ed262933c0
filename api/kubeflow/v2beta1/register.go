// SPDX-License-Identifier: Apache-2.0

package v2beta1

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

// GroupVersion is the group and version of the kind in this package.
var GroupVersion = schema.GroupVersion{Group: v1.Group, Version: "v2beta1"}
