// SPDX-License-Identifier: Apache-2.0

package trainjob

import (
	"fmt"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	jobset "diwan.dev/diwan/api/jobset/v1alpha2"
	"diwan.dev/diwan/api/trainer/v1alpha1"
	"diwan.dev/diwan/internal/platform/reconciling"
)

// Name is the controller's name in events.
const Name = "trainjob-controller"

// Config configures the reconciler of jobs.
type Config struct {
	// Events records Kubernetes events. Required.
	Events *reconciling.Events
	// Clock is the time. Default: the system's.
	Clock clock.PassiveClock
	// StatusServer is where the Pods of jobs report progress. Default: none.
	StatusServer StatusServer
	// Concurrency is how many jobs are reconciled at once. Default 16.
	Concurrency int
}

// StatusServer is a server of [diwan.dev/diwan/internal/training/statusserver], as Pods
// reach it.
type StatusServer struct {
	// URL is https://host:port.
	URL string
	// Authorities returns the certificates that vouch for it, PEM encoded, or
	// why they are not known yet.
	Authorities func() ([]byte, error)
}

// DefaultConfig returns the defaults, without the required fields.
func DefaultConfig() Config { return Config{Clock: clock.RealClock{}, Concurrency: 16} }

// SetupWithManager adds the reconciler to a manager.
func SetupWithManager(mgr manager.Manager, config Config) error {
	r := &Reconciler{Config: config, client: mgr.GetClient(), live: mgr.GetAPIReader()}
	err := builder.ControllerManagedBy(mgr).
		Named(Name).
		For(&v1alpha1.TrainJob{}).
		Owns(&jobset.JobSet{}).
		WithOptions(reconciling.ControllerOptions(config.Concurrency)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("cannot set up %s: %w", Name, err)
	}
	return nil
}
