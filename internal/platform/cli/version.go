// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version and commit are set by the linker; the default is what the Go tool recorded.
var version, commit string

// build is the output of `diwan version`.
type build struct {
	Version    string `json:"version"`
	Commit     string `json:"commit,omitempty"`
	Kubernetes string `json:"kubernetes"`
	Go         string `json:"go"`
	Platform   string `json:"platform"`
}

// version returns the command that prints the version.
func (a *app) version() *cobra.Command {
	return &cobra.Command{
		Use:               "version",
		Short:             "Print the version of diwan and its embedded Kubernetes",
		Example:           "  diwan version -o json",
		Args:              NoArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			asJSON, err := a.options.json()
			if err != nil {
				return err
			}
			b := thisBuild()
			if asJSON {
				text, err := json.MarshalIndent(b, "", "  ")
				if err != nil {
					return err
				}
				_, err = fmt.Fprintln(a.streams.Out, string(text))
				return err
			}
			_, err = fmt.Fprintln(a.streams.Out, b)
			return err
		},
	}
}

// String is the build on one line.
func (b build) String() string {
	return fmt.Sprintf("diwan %s (Kubernetes %s, %s, %s)", b.Version, b.Kubernetes, b.Go, b.Platform)
}

// thisBuild describes this binary.
func thisBuild() build {
	b := build{Version: version, Commit: commit, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Kubernetes: "unknown"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		b.Version = cmp.Or(b.Version, "unknown")
		return b
	}
	b.Version = cmp.Or(b.Version, info.Main.Version, "unknown")
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			b.Commit = cmp.Or(b.Commit, setting.Value)
		}
	}
	for _, module := range info.Deps {
		if module.Path == "k8s.io/kubernetes" {
			b.Kubernetes = module.Version
		}
	}
	return b
}

// NoArguments refuses arguments.
func NoArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef("unexpected argument %q", args[0])
	}
	return nil
}
