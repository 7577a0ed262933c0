// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"diwan.dev/diwan/api/jobset/v1alpha2"
	"diwan.dev/diwan/internal/platform/reconciling"
)

// Name is the controller's name in events.
const Name = "jobset-controller"

// Config configures the reconciler of sets.
type Config struct {
	// Events records Kubernetes events. Required.
	Events *reconciling.Events
	// Clock is the time. Default: the system's.
	Clock clock.PassiveClock
	// Concurrency is how many sets are reconciled at once. Default 16.
	Concurrency int
}

// DefaultConfig returns the defaults, without the required fields.
func DefaultConfig() Config { return Config{Clock: clock.RealClock{}, Concurrency: 16} }

// SetupWithManager adds the reconciler to a manager. The Jobs and Services of
// sets are in a cache of their own, which holds no others.
func SetupWithManager(mgr manager.Manager, config Config) error {
	owns, err := reconciling.NewCache(mgr, v1alpha2.LabelJobSetName, &batchv1.Job{}, &corev1.Service{})
	if err != nil {
		return fmt.Errorf("cannot set up %s: %w", Name, err)
	}
	r := &Reconciler{Config: config, client: mgr.GetClient(), children: owns, live: mgr.GetAPIReader()}
	owned := handler.OnlyControllerOwner()
	err = builder.ControllerManagedBy(mgr).
		Named(Name).
		For(&v1alpha2.JobSet{}).
		WatchesRawSource(source.Kind(owns, &batchv1.Job{},
			handler.TypedEnqueueRequestForOwner[*batchv1.Job](mgr.GetScheme(), mgr.GetRESTMapper(), &v1alpha2.JobSet{}, owned))).
		WatchesRawSource(source.Kind(owns, &corev1.Service{},
			handler.TypedEnqueueRequestForOwner[*corev1.Service](mgr.GetScheme(), mgr.GetRESTMapper(), &v1alpha2.JobSet{}, owned))).
		WithOptions(reconciling.ControllerOptions(config.Concurrency)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("cannot set up %s: %w", Name, err)
	}
	return nil
}
