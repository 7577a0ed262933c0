// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"diwan.dev/diwan/internal/elasticcmd"
)

// elastic returns the commands about elastic training. They know no cluster.
func (a *app) elastic() *cobra.Command {
	command := elasticcmd.New(elasticcmd.Streams(a.streams))
	for _, c := range command.Commands() {
		run := c.RunE
		c.RunE = func(c *cobra.Command, args []string) error {
			err := run(c, args)
			var exit *elasticcmd.ExitError
			if errors.As(err, &exit) {
				return &exitError{exit.Code}
			}
			return err
		}
	}
	return command
}
