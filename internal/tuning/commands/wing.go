// SPDX-License-Identifier: Apache-2.0

// Package commands is what tuning adds to the command line: how its kinds are followed, how the logs
// of trials are found, which Pods an experiment would have, and a command that offers the search
// library to others.
package commands

import (
	"github.com/spf13/cobra"

	"diwan.dev/diwan/internal/platform/cli"
	"diwan.dev/diwan/internal/tuning"
)

// Wing is tuning on the command line.
func Wing() cli.Wing {
	domain := tuning.New(tuning.Options{}).Domain()
	return cli.Wing{
		Name: domain.Name, AddToScheme: domain.AddToScheme, Kinds: domain.Kinds,
		Commands: []func(cli.Streams) *cobra.Command{algorithmServer},
		Follow:   followed(), Logs: logged(), Check: checked(),
		Operator: newOperator(),
	}
}
