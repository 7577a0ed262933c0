// SPDX-License-Identifier: Apache-2.0

// Package commands lists what the domains are on the command line.
package commands

import (
	"os"

	"github.com/spf13/pflag"

	wings "diwan.dev/diwan/internal/diwan/laptop"
	models "diwan.dev/diwan/internal/models/commands"
	"diwan.dev/diwan/internal/platform/cli"
	"diwan.dev/diwan/internal/platform/laptop"
	training "diwan.dev/diwan/internal/training/commands"
	tuning "diwan.dev/diwan/internal/tuning/commands"
)

// House has the domains for one command.
func House() cli.House {
	var options wings.Options
	return cli.House{
		Wings: []cli.Wing{tuning.Wing(), training.Wing(), models.Wing()},
		Laptop: cli.Laptop{
			AddFlags: func(flags *pflag.FlagSet) {
				flags.StringVar(&options.GangScheduler, "gang-scheduler-name", "", "gang-schedule the Pods of every training job, as this scheduler does: kubernetes, volcano or scheduler-plugins-scheduler; if empty, only jobs with a schedulingPolicy")
			},
			Wings: func(lent *laptop.Lent) ([]laptop.Wing, error) { return wings.Wings(options)(lent) },
		},
	}
}

// Main is the program diwan, by whatever name it was started. It returns its exit code.
func Main() int { return cli.MainAs(House(), os.Args[0], os.Args[1:], cli.Std()) }
