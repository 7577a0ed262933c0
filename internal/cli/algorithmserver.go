// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"diwan.dev/diwan/internal/algorithm/server"
	"diwan.dev/diwan/optimize"
)

// algorithmServer returns the command that offers the search library by gRPC.
func (a *app) algorithmServer() *cobra.Command {
	var address, name string
	command := &cobra.Command{
		Use:   "algorithm-server",
		Short: "Offer the search algorithms by Katib's gRPC services",
		Long: `Algorithm-server answers as Katib's services Suggestion and EarlyStopping, so that Katib's
own controller, or any other program, can search with Diwan's algorithms. It keeps
nothing: an answer follows from the request alone.`,
		Example: `  # Every algorithm, for programs of this machine.
  diwan algorithm-server

  # As the service of one algorithm, for Katib in a cluster.
  diwan algorithm-server --address :6789 --algorithm tpe`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			if known := algorithmNames(); name != "" && !slices.Contains(known, name) {
				return usagef("cannot use --algorithm %s: known are %s", name, strings.Join(known, ", "))
			}
			ctx, release := interruptible(context.Background())
			defer release()
			listener, err := net.Listen("tcp", address)
			if err != nil {
				return fmt.Errorf("cannot listen: %w", err)
			}
			if _, err := fmt.Fprintf(a.streams.Out, "ready at %s\n", listener.Addr()); err != nil {
				return err
			}
			return (&server.Server{Algorithm: name}).Serve(ctx, listener)
		},
	}
	command.Flags().StringVar(&address, "address", "127.0.0.1:6788", "address to answer at; anyone who reaches it may ask")
	command.Flags().StringVar(&name, "algorithm", "", "the algorithm that answers, whatever a request names (default the one that it names)")
	return command
}

func algorithmNames() []string {
	var names []string
	for _, algorithm := range optimize.Known() {
		names = append(names, algorithm.Name)
	}
	return names
}
