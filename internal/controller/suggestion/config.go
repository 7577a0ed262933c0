// SPDX-License-Identifier: Apache-2.0

package suggestion

import (
	"time"

	"k8s.io/utils/clock"

	"diwan.dev/diwan/internal/algorithm"
	"diwan.dev/diwan/internal/controller/report"
	"diwan.dev/diwan/internal/earlystopping"
)

// Config says how suggestions are reconciled.
type Config struct {
	// Stopping knows by which rules trials are stopped early. Required.
	Stopping *earlystopping.History
	// Services finds the services of algorithms that the library does not
	// have, and Client asks them.
	Services algorithm.Directory
	Client   algorithm.Client
	// Events are what is told to the outside. Required.
	Events *report.Events
	// Clock is the time. Default: the system's.
	Clock clock.PassiveClock
	// Concurrency is how many suggestions are reconciled at once. Default 4.
	Concurrency int
	// Asking is how many more are that wait for a service. Default 16.
	Asking int
	// Keep is how many of the newest assignments stay in the status whatever
	// became of their trials. Default 100: some 20 kB.
	Keep int
}

// DefaultConfig is the Config of an ordinary machine, but for what is required.
func DefaultConfig() Config {
	return Config{Clock: clock.RealClock{}, Concurrency: 4, Asking: 16, Keep: 100, Client: algorithm.Client{Timeout: time.Minute}}
}
