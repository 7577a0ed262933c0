// SPDX-License-Identifier: Apache-2.0

// Package commands is what models add to the command line: `diwan model`.
package commands

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"diwan.dev/diwan/internal/models"
	"diwan.dev/diwan/internal/platform/cli"
	"diwan.dev/diwan/internal/platform/domain"
)

// Wing is models on the command line.
func Wing() cli.Wing {
	d := models.Domain()
	return cli.Wing{
		Name: d.Name, AddToScheme: d.AddToScheme, Kinds: d.Kinds,
		Commands: []func(cli.Streams) *cobra.Command{model},
		Operator: &cli.Operator{
			AddFlags: func(*pflag.FlagSet) {},
			Domain:   func(cli.Lent) (domain.Domain, error) { return models.Domain(), nil },
		},
	}
}
