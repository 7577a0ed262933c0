// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"diwan.dev/diwan/api/trainer/v1alpha1"
	"diwan.dev/diwan/internal/platform/cli"
	"diwan.dev/diwan/internal/training/initializer"
)

// initialize returns the command that stands for Kubeflow Trainer's initializer images: it fetches
// what a TrainJob trains on, as the variables of its container say.
func initialize(streams cli.Streams) *cobra.Command {
	command := &cobra.Command{
		Use:    "initialize dataset|model",
		Short:  "Fetch a TrainJob's data or model from STORAGE_URI",
		Hidden: true,
		Args:   cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
	}
	command.ValidArgs = []string{"dataset", "model"}
	command.RunE = func(_ *cobra.Command, args []string) error {
		ctx, release := cli.Interruptible(context.Background())
		defer release()
		config := initializer.FromEnvironment(os.Getenv, args[0] == "model")
		for volume := range strings.SplitSeq(os.Getenv("DIWAN_VOLUMES"), ":") { // the machine cannot mount it at /workspace
			if path, ok := strings.CutPrefix(volume, v1alpha1.InitializerVolume+"="); ok {
				config.Directory = filepath.Join(path, filepath.Base(config.Directory))
			}
		}
		config.Log = func(format string, args ...any) { fmt.Fprintf(streams.Out, format+"\n", args...) }
		n, err := initializer.Fetch(ctx, config)
		if err == nil {
			fmt.Fprintf(streams.Out, "%d files in %s\n", n, config.Directory)
		}
		return err
	}
	return command
}
