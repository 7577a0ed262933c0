// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/duration"
	sigsyaml "sigs.k8s.io/yaml"

	"diwan.dev/diwan/internal/platform/imagestore"
	"diwan.dev/diwan/internal/platform/laptop"
	"diwan.dev/diwan/internal/platform/node/image"
)

// imagesList returns the command that shows the table and what was pulled.
func (a *app) imagesList() *cobra.Command {
	return &cobra.Command{
		Use:               "list",
		Short:             "List the images in the table, and those that were pulled",
		Example:           "  diwan images list -o json",
		Args:              NoArguments,
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
			pulled, err := a.pulledImages()
			if err != nil {
				return err
			}
			if asJSON {
				return a.printImagesJSON(entries, pulled)
			}
			return a.printImages(table, entries, pulled)
		},
	}
}

// pulledImages lists the images in the home's store, if there is one.
func (a *app) pulledImages() ([]*imagestore.Image, error) {
	home, err := a.options.homeDir()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(home.Path(laptop.ImageDir)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	store, _, err := a.imageStore()
	if err != nil {
		return nil, err
	}
	return store.List()
}

func (a *app) printImages(table string, entries []image.Entry, pulled []*imagestore.Image) error {
	if len(entries) == 0 && len(pulled) == 0 {
		fmt.Fprintf(a.streams.Err, "no image is mapped in %s, and none was pulled: commands run directly on this machine\n", table)
		return nil
	}
	out := tabwriter.NewWriter(a.streams.Out, 0, 0, 3, ' ', 0)
	if len(entries) > 0 {
		fmt.Fprintln(out, "IMAGE\tMAPPED TO")
		for _, e := range entries {
			fmt.Fprintf(out, "%s\t%s\n", e.Image, strings.Join(meaning(e), "; "))
		}
	}
	if len(entries) > 0 && len(pulled) > 0 {
		fmt.Fprintln(out)
	}
	if len(pulled) > 0 {
		fmt.Fprintln(out, "PULLED IMAGE\tDIGEST\tSIZE\tUSED")
		for _, i := range pulled {
			for _, name := range tagsOf(i) {
				fmt.Fprintf(out, "%s\t%.19s\t%s\t%s ago\n", name, i.Digest(), megabytes(i.Size()), duration.HumanDuration(time.Since(i.Used())))
			}
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("cannot write the list: %w", err)
	}
	return nil
}

// tagsOf are an image's names, without those by digest if there are others.
func tagsOf(i *imagestore.Image) []string {
	var tags []string
	for _, name := range i.Names() {
		if !strings.Contains(name, "@") {
			tags = append(tags, name)
		}
	}
	if len(tags) == 0 {
		return append(i.Names(), "-")[:max(1, len(i.Names()))]
	}
	return tags
}

// meaning summarizes an entry, a few words per field.
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
		text := cmp.Or(p.Python, "python3")
		if len(packages) > 0 {
			text = "python with " + strings.Join(packages, " ")
		}
		parts = append(parts, text)
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
	if e.Runtime == image.RuntimeImage {
		parts = append(parts, "the image itself")
		if e.Privileged {
			parts = append(parts, "may be privileged")
		}
	}
	if e.WorkingDir != "" {
		parts = append(parts, "starts in "+e.WorkingDir)
	}
	return parts
}

// printImagesJSON prints the entries in the words of images.yaml, and then the pulled
// images.
func (a *app) printImagesJSON(entries []image.Entry, pulled []*imagestore.Image) error {
	text, err := yaml.Marshal(entries)
	if err != nil {
		return fmt.Errorf("cannot write the list: %w", err)
	}
	var all []any
	if err := sigsyaml.Unmarshal(text, &all); err != nil {
		return fmt.Errorf("cannot write the list as JSON: %w", err)
	}
	for _, i := range pulled {
		all = append(all, map[string]any{"image": tagsOf(i)[0], "names": i.Names(), "digest": i.Digest(), "size": i.Size(), "used": i.Used()})
	}
	if all == nil {
		all = []any{}
	}
	out := json.NewEncoder(a.streams.Out)
	out.SetIndent("", "  ")
	if err := out.Encode(all); err != nil {
		return fmt.Errorf("cannot write the list: %w", err)
	}
	return nil
}
