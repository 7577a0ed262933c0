// SPDX-License-Identifier: Apache-2.0

package trainjob

import (
	"fmt"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	jobset "diwan.dev/diwan/api/jobset/v1alpha2"
	"diwan.dev/diwan/api/trainer/v1alpha1"
	"diwan.dev/diwan/internal/controller/report"
	"diwan.dev/diwan/internal/controller/workers"
)

// Name is the controller's name, which events bear.
const Name = "trainjob-controller"

// Config says how jobs are reconciled.
type Config struct {
	// Events are what is told to the outside. Required.
	Events *report.Events
	// Clock is the time. Default: the system's.
	Clock clock.PassiveClock
	// StatusServer is where the Pods of jobs tell how far they are. Default: they
	// are told of none.
	StatusServer StatusServer
	// Concurrency is how many jobs are reconciled at once. Default 16.
	Concurrency int
}

// StatusServer is a server of [diwan.dev/diwan/internal/statusserver], as Pods
// reach it.
type StatusServer struct {
	// URL is https://host:port.
	URL string
	// Authorities returns the certificates that vouch for it, PEM encoded, or
	// why they are not known yet.
	Authorities func() ([]byte, error)
}

// DefaultConfig is the Config of an ordinary machine, but for what is required.
func DefaultConfig() Config { return Config{Clock: clock.RealClock{}, Concurrency: 16} }

// SetupWithManager adds the reconciler to a manager.
func SetupWithManager(mgr manager.Manager, config Config) error {
	r := &Reconciler{Config: config, client: mgr.GetClient(), live: mgr.GetAPIReader()}
	err := builder.ControllerManagedBy(mgr).
		Named(Name).
		For(&v1alpha1.TrainJob{}).
		Owns(&jobset.JobSet{}).
		WithOptions(workers.Options(config.Concurrency)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("cannot set up %s: %w", Name, err)
	}
	return nil
}
