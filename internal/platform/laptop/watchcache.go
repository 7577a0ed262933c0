// SPDX-License-Identifier: Apache-2.0

package laptop

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

// disableCaches has the API server keep no custom resources in memory. Its cache
// holds every object of a kind, decoded to maps, some 17 kB of a trial of 2, and the
// last hundred changes or more, each with the whole object: of an experiment of 1 MB
// these are a gigabyte. The cache spares work where a kind has many watchers; of
// these there is one, the operator.
func disableCaches(config *app.Config) {
	extra := &config.ApiExtensions.ExtraConfig
	extra.CRDRESTOptionsGetter = uncached{extra.CRDRESTOptionsGetter}
}

// uncached reads resources from storage.
type uncached struct{ generic.RESTOptionsGetter }

// GetRESTOptions implements generic.RESTOptionsGetter.
func (u uncached) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := u.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err == nil {
		options.Decorator = generic.UndecoratedStorage
	}
	return options, err
}
