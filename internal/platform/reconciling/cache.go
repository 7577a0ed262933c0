// SPDX-License-Identifier: Apache-2.0

package reconciling

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// NewCache creates a cache of the objects of some kinds with a label, and adds it
// to a manager.
func NewCache(mgr manager.Manager, label string, kinds ...client.Object) (cache.Cache, error) {
	selected := map[client.Object]cache.ByObject{}
	for _, kind := range kinds {
		selected[kind] = cache.ByObject{Label: HasLabel(label)}
	}
	c, err := cache.New(mgr.GetConfig(), cache.Options{
		Scheme:           mgr.GetScheme(),
		Mapper:           mgr.GetRESTMapper(),
		HTTPClient:       mgr.GetHTTPClient(),
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject:         selected,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot create the cache of objects with label %s: %w", label, err)
	}
	return c, mgr.Add(c)
}

// HasLabel selects objects with a label, whatever its value. label must be a valid key.
func HasLabel(label string) labels.Selector {
	requirement, err := labels.NewRequirement(label, selection.Exists, nil)
	if err != nil {
		panic(err) // labels are constants
	}
	return labels.NewSelector().Add(*requirement)
}
