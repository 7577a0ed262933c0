// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"diwan.dev/diwan/internal/platform/reconciling"
	"diwan.dev/diwan/internal/tuning/earlystopping"
	"diwan.dev/diwan/internal/tuning/metrics"
	"diwan.dev/diwan/internal/tuning/trialkind"
	"diwan.dev/diwan/observation"
)

// Config configures the reconciler of trials.
type Config struct {
	// Store holds what trials report. Required.
	Store observation.Store
	// Stopping has the learning curves for early stopping. Required.
	Stopping *earlystopping.History
	// Metrics and Events record what happens. Required.
	Metrics *metrics.Metrics
	Events  *reconciling.Events
	// Clock is the time. Default: the system's.
	Clock clock.PassiveClock
	// Kinds decides which kinds a run object may have. Default: those that
	// need no configuration.
	Kinds trialkind.Directory
	// Concurrency is how many trials are reconciled at once. Default 16.
	Concurrency int
	// RunningDelay is how long a trial runs before its status says so.
	// Default 1 s: a trial that ends sooner saves a write, and nobody could
	// have read it.
	RunningDelay time.Duration
	// ObservationInterval is how often the status of a running trial is
	// updated with its metrics. Default 5 s. If reading is slow, it happens
	// less often, so that it takes at most 2 % of the time.
	ObservationInterval time.Duration
}

// DefaultConfig returns the defaults, without the required fields.
func DefaultConfig() Config {
	return Config{
		Clock:               clock.RealClock{},
		Concurrency:         16,
		RunningDelay:        time.Second,
		ObservationInterval: 5 * time.Second,
	}
}

func jobKind() schema.GroupVersionKind { return batchv1.SchemeGroupVersion.WithKind("Job") }
