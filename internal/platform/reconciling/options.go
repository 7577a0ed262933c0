// SPDX-License-Identifier: Apache-2.0

package reconciling

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// The waits before an object that failed is reconciled again: short enough for
// a conflict that the cache resolves at once, and not so long that a repaired
// cause goes unnoticed.
const (
	firstWait = 5 * time.Millisecond
	lastWait  = 30 * time.Second
)

// ControllerOptions returns the options of a controller with the given concurrency.
func ControllerOptions(concurrency int) controller.Options {
	skipNameValidation := true // a process may run several managers
	return controller.Options{
		MaxConcurrentReconciles: concurrency,
		SkipNameValidation:      &skipNameValidation,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstWait, lastWait),
	}
}

// Soonest returns the shortest of some delays until an object is reconciled
// again, where 0 means none.
func Soonest(waits ...time.Duration) time.Duration {
	least := time.Duration(0)
	for _, w := range waits {
		if w > 0 && (least == 0 || w < least) {
			least = w
		}
	}
	return least
}
