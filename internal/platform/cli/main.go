// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"diwan.dev/diwan/internal/platform/node/keeper"
)

// Streams are the standard streams of a command.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Std are the streams of this process.
func Std() Streams { return Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr} }

// MainAs is Main of a binary that was started by the name program: as one that a domain has under
// this name, as the keeper of a container's input, or as diwan.
func MainAs(house House, program string, args []string, streams Streams) int {
	if program == keeper.Name {
		return keeper.Main(args)
	}
	for _, wing := range house.Wings {
		if run := wing.Programs[filepath.Base(program)]; run != nil {
			return run(program, args, streams)
		}
	}
	return Main(house, args, streams)
}

// Main runs diwan with the arguments that follow the program's name, and returns its exit code.
func Main(house House, args []string, streams Streams) int {
	a := &app{house: house, streams: streams}
	a.options.wings, a.options.kinds = house.Laptop.Wings, house.kinds()
	root := a.root()
	root.SetArgs(args)
	command, err := root.ExecuteContextC(context.Background())
	if err != nil && !a.parsed {
		err = &usageError{err} // cobra's own complaints come before any command runs
	}
	code := exitCode(err)
	var silent *ExitError
	if err != nil && !errors.As(err, &silent) && !errors.Is(err, errInterrupted) {
		fmt.Fprintln(streams.Err, "error:", err)
	}
	if code == exitUsage {
		fmt.Fprintf(streams.Err, "See `%s --help` for usage.\n", command.CommandPath())
	}
	return code
}

// app is one call of diwan.
type app struct {
	house   House
	streams Streams
	options options
	parsed  bool // whether a command was chosen and its flags and arguments were well-formed
}

// root returns the command tree.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "diwan",
		Short: "Tune and train models on a laptop or a cluster",
		Long: `Diwan runs Kubeflow manifests: on this machine, with an embedded Kubernetes control
plane and Pods as processes, or on a cluster.`,
		Example: `  # Tune the example's model; starts a local cluster if none is running.
  diwan run examples/quickstart/experiment.yaml

  # Keep the local cluster running, and list its experiments and trials.
  diwan up
  diwan kubectl get experiments,trials`,
		Version:                    thisBuild().String(),
		Args:                       cobra.ArbitraryArgs,
		RunE:                       unknownCommand,
		SuggestionsMinimumDistance: 2,
		SilenceErrors:              true,
		SilenceUsage:               true,
		TraverseChildren:           true, // so that `diwan --home DIR kubectl …` keeps its own flags
		PersistentPreRun:           func(*cobra.Command, []string) { a.parsed = true },
	}
	root.SetIn(a.streams.In)
	root.SetOut(a.streams.Out)
	root.SetErr(a.streams.Err)
	a.options.addTo(root)
	root.SetVersionTemplate("{{.Version}}\n")
	root.Flags().Bool("version", false, "print the version")
	if flag := pflag.Lookup("version"); flag != nil {
		flag.Hidden = true // Kubernetes' libraries put one of theirs on every command
	}
	root.AddCommand(a.run(), a.check(), a.logs(), a.up(), a.operator(), a.kubectl(), a.images(), a.registry(), a.version())
	for _, wing := range a.house.Wings {
		for _, command := range wing.Commands {
			root.AddCommand(command(a.streams))
		}
	}
	return root
}

// unknownCommand shows the help if no command is given, and suggests corrections for an
// unknown one.
func unknownCommand(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return root.Help()
	}
	if meant := root.SuggestionsFor(args[0]); len(meant) > 0 {
		return Usagef("unknown command %q: did you mean %s?", args[0], strings.Join(meant, " or "))
	}
	return Usagef("unknown command %q", args[0])
}
