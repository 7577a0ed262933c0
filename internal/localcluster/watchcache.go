// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
)

// disableCaches has the API server keep no trials and suggestions in memory. Its
// cache holds every object of a kind, decoded to maps: some 17 kB of a trial of 2,
// and trials stay when they have ended; and each change of more than a minute,
// and a suggestion is large and changes often. The cache spares work where a kind
// has many watchers; of these there is one, the operator.
func disableCaches(config *app.Config) {
	extra := &config.ApiExtensions.ExtraConfig
	extra.CRDRESTOptionsGetter = uncached{
		RESTOptionsGetter: extra.CRDRESTOptionsGetter,
		resources: map[schema.GroupResource]bool{
			v1beta1.GroupVersion.WithResource("trials").GroupResource():      true,
			v1beta1.GroupVersion.WithResource("suggestions").GroupResource(): true,
		},
	}
}

// uncached reads some resources from storage, and the others as they were read.
type uncached struct {
	generic.RESTOptionsGetter
	resources map[schema.GroupResource]bool
}

// GetRESTOptions implements generic.RESTOptionsGetter.
func (u uncached) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := u.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err == nil && u.resources[resource] {
		options.Decorator = generic.UndecoratedStorage
	}
	return options, err
}
