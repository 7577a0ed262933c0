// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"errors"

	"github.com/spf13/cobra"

	"diwan.dev/diwan/internal/platform/cli"
	"diwan.dev/diwan/internal/training/elasticcmd"
)

// elastic returns the commands about elastic training. They know no cluster.
func elastic(streams cli.Streams) *cobra.Command {
	command := elasticcmd.New(elasticcmd.Streams(streams))
	for _, c := range command.Commands() {
		run := c.RunE
		c.RunE = func(c *cobra.Command, args []string) error {
			err := run(c, args)
			var exit *elasticcmd.ExitError
			if errors.As(err, &exit) {
				return &cli.ExitError{Code: exit.Code}
			}
			return err
		}
	}
	return command
}
