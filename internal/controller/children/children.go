// SPDX-License-Identifier: Apache-2.0

// Package children caches what the objects of a reconciler own, apart from the
// manager's cache: that has one selection a kind for all reconcilers, and holds
// no Jobs but those of trials.
package children

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// NewCache makes a cache of the objects of some kinds that bear a label, and adds
// it to a manager.
func NewCache(mgr manager.Manager, label string, kinds ...client.Object) (cache.Cache, error) {
	bears, err := labels.NewRequirement(label, selection.Exists, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot select objects by label %s: %w", label, err)
	}
	selected := map[client.Object]cache.ByObject{}
	for _, kind := range kinds {
		selected[kind] = cache.ByObject{Label: labels.NewSelector().Add(*bears)}
	}
	c, err := cache.New(mgr.GetConfig(), cache.Options{
		Scheme:           mgr.GetScheme(),
		Mapper:           mgr.GetRESTMapper(),
		HTTPClient:       mgr.GetHTTPClient(),
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject:         selected,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot make the cache of objects with label %s: %w", label, err)
	}
	return c, mgr.Add(c)
}
