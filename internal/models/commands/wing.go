// SPDX-License-Identifier: Apache-2.0

// Package commands is what models add to the command line: `diwan model`.
package commands

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/spf13/cobra"

	"diwan.dev/diwan/internal/platform/cli"
)

// Wing is models on the command line.
func Wing() cli.Wing {
	return cli.Wing{
		Name:        "models",
		AddToScheme: func(*runtime.Scheme) error { return nil },
		Commands:    []func(cli.Streams) *cobra.Command{model},
	}
}
