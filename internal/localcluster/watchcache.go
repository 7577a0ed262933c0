// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
)

// disableTrialCache has the API server keep no trials in memory. Its cache holds
// every object of a kind, decoded to maps: some 17 kB of a trial of 2, and trials
// stay when they have ended. The cache spares work where a kind has many
// watchers; of trials there is one, the operator.
func disableTrialCache(config *app.Config) {
	extra := &config.ApiExtensions.ExtraConfig
	extra.CRDRESTOptionsGetter = uncached{
		RESTOptionsGetter: extra.CRDRESTOptionsGetter,
		resource:          v1beta1.GroupVersion.WithResource("trials").GroupResource(),
	}
}

// uncached reads one resource from storage, and the others as they were read.
type uncached struct {
	generic.RESTOptionsGetter
	resource schema.GroupResource
}

// GetRESTOptions implements generic.RESTOptionsGetter.
func (u uncached) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := u.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err == nil && resource == u.resource {
		options.Decorator = generic.UndecoratedStorage
	}
	return options, err
}
