// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"

	"diwan.dev/diwan/internal/node/image"
)

// imagesList returns the command that shows the table.
func (a *app) imagesList() *cobra.Command {
	return &cobra.Command{
		Use:               "list",
		Short:             "List the images in the table",
		Example:           "  diwan images list -o json",
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			asJSON, err := a.options.json()
			if err != nil {
				return err
			}
			table, err := a.imageTable()
			if err != nil {
				return err
			}
			entries, err := image.Load(table)
			if err != nil {
				return err
			}
			if asJSON {
				return a.printImagesJSON(entries)
			}
			return a.printImages(table, entries)
		},
	}
}

func (a *app) printImages(table string, entries []image.Entry) error {
	if len(entries) == 0 {
		fmt.Fprintf(a.streams.Err, "no image is mapped in %s: commands run on this machine as they are\n", table)
		return nil
	}
	out := tabwriter.NewWriter(a.streams.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(out, "IMAGE\tSTANDS FOR")
	for _, e := range entries {
		fmt.Fprintf(out, "%s\t%s\n", e.Image, strings.Join(meaning(e), "; "))
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("cannot write the list: %w", err)
	}
	return nil
}

// meaning is what an entry says, in a few words each.
func meaning(e image.Entry) []string {
	var parts []string
	if e.Builtin != "" {
		parts = append(parts, "built-in "+e.Builtin)
	}
	if p := e.Python; p != nil {
		packages := slices.Clone(p.Packages)
		if p.Requirements != "" {
			packages = append([]string{p.Requirements}, packages...)
		}
		parts = append(parts, "python with "+strings.Join(packages, " "))
	}
	if len(e.Command) > 0 {
		parts = append(parts, "command "+strings.Join(e.Command, " "))
	}
	if len(e.Path) > 0 {
		parts = append(parts, "path "+strings.Join(e.Path, ":"))
	}
	for _, at := range slices.Sorted(maps.Keys(e.Files)) {
		parts = append(parts, at+" from "+e.Files[at])
	}
	for _, name := range slices.Sorted(maps.Keys(e.Env)) {
		parts = append(parts, name+"="+e.Env[name])
	}
	if e.WorkingDir != "" {
		parts = append(parts, "starts in "+e.WorkingDir)
	}
	return parts
}

// printImagesJSON prints the entries in the words of images.yaml.
func (a *app) printImagesJSON(entries []image.Entry) error {
	text, err := yaml.Marshal(entries)
	if err != nil {
		return fmt.Errorf("cannot write the list: %w", err)
	}
	if text, err = sigsyaml.YAMLToJSON(text); err != nil {
		return fmt.Errorf("cannot write the list as JSON: %w", err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, text, "", "  "); err != nil {
		return fmt.Errorf("cannot write the list as JSON: %w", err)
	}
	if _, err := fmt.Fprintln(a.streams.Out, out.String()); err != nil {
		return fmt.Errorf("cannot write the list: %w", err)
	}
	return nil
}
