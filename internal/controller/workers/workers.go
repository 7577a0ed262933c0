// SPDX-License-Identifier: Apache-2.0

// Package workers says how the reconcilers take work from their queues, which
// is the same for all of them: several objects at once, each by one worker,
// and one that failed again after a wait that doubles.
package workers

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

// Options are those of a controller that reconciles so many objects at once.
func Options(concurrency int) controller.Options {
	skipNameValidation := true // a process may run several managers
	return controller.Options{
		MaxConcurrentReconciles: concurrency,
		SkipNameValidation:      &skipNameValidation,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstWait, lastWait),
	}
}

// Soonest is the least of some waits until an object is to be looked at again,
// of which 0 is none.
func Soonest(waits ...time.Duration) time.Duration {
	least := time.Duration(0)
	for _, w := range waits {
		if w > 0 && (least == 0 || w < least) {
			least = w
		}
	}
	return least
}
