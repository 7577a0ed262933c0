// SPDX-License-Identifier: Apache-2.0

package suggestion

import (
	"time"

	"k8s.io/utils/clock"

	"diwan.dev/diwan/internal/platform/reconciling"
	"diwan.dev/diwan/internal/tuning/algorithm"
	"diwan.dev/diwan/internal/tuning/earlystopping"
)

// Config configures the reconciler of suggestions.
type Config struct {
	// Stopping provides the early stopping rules. Required.
	Stopping *earlystopping.History
	// Services finds the services of algorithms that the library does not
	// have, and Client asks them.
	Services algorithm.Directory
	Client   algorithm.Client
	// RunsNothing says that services are asked, but not run from images.
	RunsNothing bool
	// Events records Kubernetes events. Required.
	Events *reconciling.Events
	// Clock is the time. Default: the system's.
	Clock clock.PassiveClock
	// Concurrency is how many suggestions are reconciled at once. Default 4.
	Concurrency int
	// Asking is how many more are that wait for a service. Default 16.
	Asking int
	// Keep is how many of the newest assignments stay in the status whatever
	// the state of their trials. Default 100: about 20 kB.
	Keep int
}

// DefaultConfig returns the defaults, without the required fields.
func DefaultConfig() Config {
	return Config{Clock: clock.RealClock{}, Concurrency: 4, Asking: 16, Keep: 100, Client: algorithm.Client{Timeout: time.Minute}}
}
