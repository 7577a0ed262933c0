// SPDX-License-Identifier: Apache-2.0

// Package elasticcmd is the commands about elastic training: the agent beside a
// worker, and what asks it. They are in a package of their own, without
// Kubernetes, so that a small program can have them too: cmd/diwan-elastic is for
// images of workers.
package elasticcmd

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// Variable is the environment variable with the address of a worker's agent.
const Variable = "DIWAN_ELASTIC"

// Streams are the standard streams of a command.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// An ExitError is the end of a worker that an agent ran: it ends the command with the same code.
type ExitError struct{ Code int }

// Error says only that: the worker has said the rest.
func (e *ExitError) Error() string { return "the worker failed" }

// Main runs the commands as a program of their own, and returns its exit code.
func Main() int {
	root := New(Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
	root.Use, root.SilenceUsage, root.SilenceErrors = "diwan-elastic", true, true
	err := root.Execute()
	var exit *ExitError
	switch {
	case errors.As(err, &exit):
		return exit.Code
	case err != nil:
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	return 0
}

// New returns the command elastic with those below it.
func New(streams Streams) *cobra.Command {
	command := &cobra.Command{
		Use:   "elastic",
		Short: "Elastic training: workers that come and go",
		Long: `An elastic training continues while workers come and go. An agent runs beside each worker.
The agents gossip, agree on who trains together in a view with a number and ranks,
and tell their workers when the view changes.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	command.AddCommand(agentCommand(streams), viewCommand(streams), hostsCommand(streams))
	return command
}

// socketFlag adds --socket: where the agent is.
func socketFlag(c *cobra.Command, socket *string) {
	c.Flags().StringVar(socket, "socket", cmp.Or(os.Getenv(Variable), "127.0.0.1:7947"), "address of the agent: unix:PATH, or HOST:PORT on this machine (default $"+Variable+", else 127.0.0.1:7947)")
	c.Flags().Lookup("socket").DefValue = ""
}
