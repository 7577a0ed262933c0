// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"diwan.dev/diwan/internal/platform/node/image"
)

// images returns the commands that say what container images mean on this machine.
func (a *app) images() *cobra.Command {
	command := &cobra.Command{
		Use:   "images",
		Short: "Say what container images mean on this machine, and manage those that were pulled",
		Long: `On this machine a container's command runs as a process, unless its Pod's
runtimeClassName or the image table says that it runs in its image. An image can also be
mapped to an environment on this machine: a Python environment, directories of programs,
files, variables, a default command. The table is images.yaml in the home; changes apply
to a running cluster at once.

Images that containers run in are pulled into the home.`,
		Args: unknownImagesCommand,
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(a.imagesMap(), a.imagesUnmap(), a.imagesList(),
		a.imagesPull(), a.imagesPush(), a.imagesLoad(), a.imagesSave(), a.imagesTag(), a.imagesInspect(), a.imagesRemove(), a.imagesPrune())
	return command
}

// unknownImagesCommand rejects unknown commands of images.
func unknownImagesCommand(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef("unknown command %q: must be one of map, unmap, list, pull, push, load, save, tag, inspect, remove and prune", args[0])
	}
	return nil
}

// imageTable is the path of the table of images.
func (a *app) imageTable() (string, error) {
	home, err := a.options.homeDir()
	if err != nil {
		return "", err
	}
	return home.Path("images.yaml"), nil
}

// mapping are the flags of `diwan images map`.
type mapping struct {
	entry  image.Entry
	python image.Python
	files  []string
	env    []string
}

// imagesMap returns the command that adds to the table.
func (a *app) imagesMap() *cobra.Command {
	var m mapping
	var program string
	command := &cobra.Command{
		Use:   "map IMAGE [flags] [-- ARGUMENT...]",
		Short: "Map an image to an environment on this machine",
		Long: `Map adds an image to the table, replacing an earlier entry for the same image. An image
without a tag means every tag; * matches any text and ? any character. Paths on this
machine are relative to the current directory.`,
		Example: `  # Build a Python environment once, and run the image's commands in it.
  diwan images map ghcr.io/acme/train --requirements requirements.txt

  # Run the image's commands in an existing Python environment.
  diwan images map ghcr.io/acme/train --python .venv/bin/python

  # Run containers of the image in the image itself.
  diwan images map ghcr.io/acme/server --runtime image

  # Provide files and a default command for the image.
  diwan images map ghcr.io/acme/train --file /opt/train=./src --command python3 -- /opt/train/main.py`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return Usagef("no image specified")
			}
			return nil
		},
		ValidArgsFunction: a.completeImages,
		RunE: func(command *cobra.Command, args []string) error {
			if dash := command.ArgsLenAtDash(); len(args) > 1 && dash != 1 {
				return Usagef("unexpected argument %q: put arguments of --command after --", args[1])
			}
			if len(args) > 1 && program == "" {
				return Usagef("arguments require --command")
			}
			if program != "" {
				m.entry.Command = append([]string{program}, args[1:]...)
			}
			m.entry.Image = args[0]
			return a.mapImage(m)
		},
	}
	flags := command.Flags()
	flags.StringVar(&program, "command", "", "program to run in containers that specify none; put its arguments after --")
	flags.StringVar(&m.python.Requirements, "requirements", "", "requirements file of a Python environment to build and use")
	flags.StringArrayVar(&m.python.Packages, "package", nil, "Python package to install, such as numpy>=2; repeat for more")
	flags.StringVar(&m.python.Python, "python", "", "existing Python to use, with its packages, such as .venv/bin/python; with --requirements or --package, the interpreter to build the environment with (default python3)")
	flags.StringArrayVar(&m.files, "file", nil, "CONTAINER=HOST: a path in the container and a file or directory on this machine; repeat for more")
	flags.StringArrayVar(&m.entry.Path, "path", nil, "directory to put before PATH; repeat for more")
	flags.StringArrayVar(&m.env, "env", nil, "NAME=VALUE: an environment variable; repeat for more")
	flags.StringVar(&m.entry.WorkingDir, "workdir", "", "working directory of containers")
	flags.StringVar(&m.entry.Builtin, "builtin", "", "built-in program: diwan")
	flags.StringVar(&m.entry.Runtime, "runtime", "", "in what containers run: process, or image, which pulls the image and runs them in it")
	flags.BoolVar(&m.entry.Privileged, "privileged", false, "with --runtime image, allow containers of the image to be privileged")
	return command
}

// mapImage writes the entry that the flags describe.
func (a *app) mapImage(m mapping) error {
	table, err := a.imageTable()
	if err != nil {
		return err
	}
	entry, err := m.build()
	if err != nil {
		return err
	}
	if err := image.Map(table, entry); err != nil {
		return err
	}
	if !a.options.quiet {
		fmt.Fprintf(a.streams.Err, "mapped %s in %s\n", entry.Image, table)
	}
	return nil
}

// build returns the entry, with the paths of this machine absolute.
func (m *mapping) build() (image.Entry, error) {
	entry := m.entry
	var err error
	if entry.Files, err = pairs("--file", m.files); err != nil {
		return entry, err
	}
	if entry.Env, err = pairs("--env", m.env); err != nil {
		return entry, err
	}
	for at, path := range entry.Files {
		entry.Files[at] = absolute(path)
	}
	for i, path := range entry.Path {
		entry.Path[i] = absolute(path)
	}
	if entry.WorkingDir != "" && !filepath.IsAbs(entry.WorkingDir) {
		entry.WorkingDir = absolute(entry.WorkingDir)
	}
	if len(entry.Command) > 0 && strings.Contains(entry.Command[0], "/") {
		entry.Command[0] = absolute(entry.Command[0])
	}
	if p := m.python; p.Requirements != "" || p.Python != "" || len(p.Packages) > 0 {
		if p.Requirements != "" {
			p.Requirements = absolute(p.Requirements)
		}
		if strings.Contains(p.Python, "/") {
			p.Python = absolute(p.Python)
		}
		entry.Python = &p
	}
	if entry.Python == nil && entry.Builtin == "" && len(entry.Files)+len(entry.Env)+len(entry.Path)+len(entry.Command) == 0 && entry.WorkingDir == "" && entry.Runtime == "" {
		return entry, Usagef("cannot map %s to nothing: specify an environment, for example with --requirements or --command", entry.Image)
	}
	return entry, nil
}

// pairs reads NAME=VALUE arguments of a flag.
func pairs(flag string, arguments []string) (map[string]string, error) {
	var result map[string]string
	for _, argument := range arguments {
		name, value, ok := strings.Cut(argument, "=")
		if !ok || name == "" {
			return nil, Usagef("cannot use %s %q: the form is NAME=VALUE", flag, argument)
		}
		if result == nil {
			result = map[string]string{}
		}
		result[name] = value
	}
	return result, nil
}

// absolute is a path of this machine from its root. Where the current directory is unknown the
// path stays as it is: the table's reader complains.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// imagesUnmap returns the command that takes from the table.
func (a *app) imagesUnmap() *cobra.Command {
	return &cobra.Command{
		Use:     "unmap IMAGE",
		Short:   "Remove an image from the table",
		Example: "  diwan images unmap ghcr.io/acme/train",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return Usagef("want one image, not %d", len(args))
			}
			return nil
		},
		ValidArgsFunction: a.completeImages,
		RunE: func(_ *cobra.Command, args []string) error {
			table, err := a.imageTable()
			if err != nil {
				return err
			}
			err = image.Unmap(table, args[0])
			if errors.Is(err, image.ErrNoEntry) {
				return fmt.Errorf("cannot unmap %s: it is not in %s; `diwan images list` lists the mapped images", args[0], table)
			}
			return err
		},
	}
}

// completeImages completes the images in the table.
func (a *app) completeImages(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	table, err := a.imageTable()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	entries, err := image.Load(table)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Image
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
