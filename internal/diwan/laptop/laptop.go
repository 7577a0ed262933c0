// SPDX-License-Identifier: Apache-2.0

// Package laptop lists the domains of a laptop. It is separate from package diwan so
// that the operator does not link the laptop.
package laptop

import (
	models "diwan.dev/diwan/internal/models/laptop"
	"diwan.dev/diwan/internal/platform/laptop"
	scheduling "diwan.dev/diwan/internal/scheduling/laptop"
	training "diwan.dev/diwan/internal/training/laptop"
	"diwan.dev/diwan/internal/tuning/collector/injection"
	tuning "diwan.dev/diwan/internal/tuning/laptop"
)

// Options are the options of a laptop's domains.
type Options struct {
	// Collector, if set, injects a collector into the Pods of trials, as on a cluster.
	// Nil, the default: the node collects their metrics.
	Collector *injection.Config
	// GangScheduler gang-schedules all training jobs, like the operator's flag.
	// "", the default: only jobs with a schedulingPolicy.
	GangScheduler string
}

// Wings returns the domains of a laptop.
func Wings(o Options) func(*laptop.Lent) ([]laptop.Wing, error) {
	return func(lent *laptop.Lent) ([]laptop.Wing, error) {
		trains, err := training.New(lent, o.GangScheduler)
		if err != nil {
			return nil, err
		}
		places, err := scheduling.New(o.GangScheduler)
		if err != nil {
			return nil, err
		}
		return []laptop.Wing{tuning.New(lent, o.Collector), trains, places, models.New()}, nil
	}
}

// DefaultConfig is the configuration of a laptop with all domains.
func DefaultConfig(home laptop.Home) laptop.Config {
	config := laptop.DefaultConfig(home)
	config.Wings = Wings(Options{})
	return config
}
