// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"time"

	"k8s.io/utils/clock"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/platform/reconciling"
	"diwan.dev/diwan/internal/tuning/metrics"
)

// Config configures the reconciler of experiments.
type Config struct {
	// Metrics and Events records Kubernetes events. Required.
	Metrics *metrics.Metrics
	Events  *reconciling.Events
	// Namespace is the operator's own, whose trial templates every experiment may
	// use. Default: there is none.
	Namespace string
	// Runs are the defaults of templates by what they run, for experiments that were
	// created while no webhook was asked. Default: those of Jobs.
	Runs []v1beta1.RunDefaults
	// Clock is the time. Default: the system's.
	Clock clock.PassiveClock
	// Concurrency is how many experiments are reconciled at once. Default 4.
	Concurrency int
	// Creations is how many trials of one experiment are created at once.
	// Default 8: beyond that one API server gains nothing.
	Creations int
	// StatusInterval is the least time between two writes of counts and lists
	// to one experiment's status; a change of condition does not wait.
	// Default 500 ms: people do not read faster.
	StatusInterval time.Duration
	// AskInterval is how long a request for fewer suggestions than an eighth
	// of parallelTrialCount waits for company. Default 100 ms. Experiments with
	// fewer than 16 trials in parallel never wait.
	AskInterval time.Duration
}

// DefaultConfig returns the defaults, without the required fields.
func DefaultConfig() Config {
	return Config{
		Clock:          clock.RealClock{},
		Concurrency:    4,
		Creations:      8,
		StatusInterval: 500 * time.Millisecond,
		AskInterval:    100 * time.Millisecond,
	}
}
