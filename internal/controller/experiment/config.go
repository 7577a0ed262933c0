// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"time"

	"k8s.io/utils/clock"

	"diwan.dev/diwan/internal/controller/report"
)

// Config says how experiments are reconciled.
type Config struct {
	// Metrics and Events are what is told to the outside. Required.
	Metrics *report.Metrics
	Events  *report.Events
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

// DefaultConfig is the Config of an ordinary machine, but for what is required.
func DefaultConfig() Config {
	return Config{
		Clock:          clock.RealClock{},
		Concurrency:    4,
		Creations:      8,
		StatusInterval: 500 * time.Millisecond,
		AskInterval:    100 * time.Millisecond,
	}
}
