// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"diwan.dev/diwan/internal/controller/report"
	"diwan.dev/diwan/internal/earlystopping"
	"diwan.dev/diwan/internal/trialkind"
	"diwan.dev/diwan/observation"
)

// Config says how trials are reconciled.
type Config struct {
	// Store holds what trials report. Required.
	Store observation.Store
	// Stopping knows the learning curves by which trials are stopped early.
	// Required.
	Stopping *earlystopping.History
	// Metrics and Events are what is told to the outside. Required.
	Metrics *report.Metrics
	Events  *report.Events
	// Clock is the time. Default: the system's.
	Clock clock.PassiveClock
	// Kinds says which kinds a run object may have. Default: those that need
	// no configuration.
	Kinds trialkind.Directory
	// Concurrency is how many trials are reconciled at once. Default 16.
	Concurrency int
	// RunningDelay is how long a trial runs before its status says so.
	// Default 1 s: a trial that ends sooner saves a write, and nobody could
	// have read it.
	RunningDelay time.Duration
	// ObservationInterval is how often the status of a running trial shows
	// what it has reported so far. Default 5 s. Where reading takes long, it
	// is done less often, so that it takes 2 % of the time at most.
	ObservationInterval time.Duration
}

// DefaultConfig is the Config of an ordinary machine, but for what is required.
func DefaultConfig() Config {
	return Config{
		Clock:               clock.RealClock{},
		Concurrency:         16,
		RunningDelay:        time.Second,
		ObservationInterval: 5 * time.Second,
	}
}

func jobKind() schema.GroupVersionKind { return batchv1.SchemeGroupVersion.WithKind("Job") }
