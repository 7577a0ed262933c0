// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"diwan.dev/diwan/internal/podssh"
)

// Streams are the standard streams of a command.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// MainAs is Main of a binary that was started by the name program: as ssh or sshd, which it is for
// the Pods of a laptop, or as diwan.
func MainAs(program string, args []string, streams Streams) int {
	if slices.Contains(podssh.Programs(), filepath.Base(program)) {
		return podssh.Main(program, args, streams.In, streams.Out, streams.Err)
	}
	return Main(args, streams)
}

// Main runs diwan with the arguments that follow the program's name, and returns its exit code.
func Main(args []string, streams Streams) int {
	a := &app{streams: streams}
	root := a.root()
	root.SetArgs(args)
	command, err := root.ExecuteContextC(context.Background())
	if err != nil && !a.parsed {
		err = &usageError{err} // cobra's own complaints come before any command runs
	}
	code := exitCode(err)
	var silent *exitError
	if err != nil && !errors.As(err, &silent) && !errors.Is(err, errInterrupted) {
		fmt.Fprintln(streams.Err, "error:", err)
	}
	if code == exitUsage {
		fmt.Fprintf(streams.Err, "`%s --help` tells how to use it.\n", command.CommandPath())
	}
	return code
}

// app is one call of diwan.
type app struct {
	streams Streams
	options options
	parsed  bool // whether a command was chosen and its flags and arguments were well-formed
}

// root returns the command tree.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "diwan",
		Short: "Tune and train models on a laptop as on a cluster",
		Long: `Diwan runs Kubeflow manifests: on this machine, with a Kubernetes control plane of
its own and Pods as processes, or on a cluster.`,
		Example: `  # Tune the example's model; starts a local cluster if none runs.
  diwan run examples/quickstart/experiment.yaml

  # Keep the local cluster running, and look at what is there.
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
	root.AddCommand(a.run(), a.up(), a.operator(), a.algorithmServer(), a.elastic(), a.kubectl(), a.deliverKubectl(), a.initialize(), a.images(), a.version())
	return root
}

// unknownCommand shows the help where no command is given, and says which was meant where an
// unknown one is.
func unknownCommand(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return root.Help()
	}
	if meant := root.SuggestionsFor(args[0]); len(meant) > 0 {
		return usagef("unknown command %q: did you mean %s?", args[0], strings.Join(meant, " or "))
	}
	return usagef("unknown command %q", args[0])
}

// Std are the streams of this process.
func Std() Streams { return Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr} }
