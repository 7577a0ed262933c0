// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/spf13/cobra"

	"diwan.dev/diwan/internal/platform/imagestore"
	"diwan.dev/diwan/internal/platform/laptop"
)

// imageStore opens the home's store of pulled images.
func (a *app) imageStore() (*imagestore.Store, laptop.Home, error) {
	home, err := a.options.homeDir()
	if err != nil {
		return nil, home, err
	}
	store, err := imagestore.Open(imagestore.Config{Dir: home.Path(laptop.ImageDir)})
	return store, home, err
}

// imageNames reads image names.
func imageNames(args []string) ([]imagestore.Name, error) {
	var names []imagestore.Name
	for _, arg := range args {
		name, err := imagestore.ParseName(arg)
		if err != nil {
			return nil, Usagef("%v", err)
		}
		names = append(names, name)
	}
	return names, nil
}

// someImages demands image names as arguments.
func someImages(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return Usagef("no image specified")
	}
	return nil
}

// platform reads OS/ARCH[/VARIANT]; "" is this machine's.
func platform(text string) (v1.Platform, error) {
	if text == "" {
		return imagestore.DefaultPlatform(), nil
	}
	p, err := v1.ParsePlatform(text)
	if err != nil || p.OS == "" || p.Architecture == "" {
		return v1.Platform{}, Usagef("cannot use --platform %q: the form is OS/ARCHITECTURE, such as linux/arm64", text)
	}
	return *p, nil
}

// imagesPull returns the command that pulls images.
func (a *app) imagesPull() *cobra.Command {
	var on string
	command := &cobra.Command{
		Use:   "pull IMAGE...",
		Short: "Pull images from registries into the home",
		Long: `Pull brings images into the home before containers need them, with the credentials
of Docker's configuration, by way of the mirrors in registries.yaml. What an
interruption left behind is resumed.`,
		Example: `  diwan images pull docker.io/library/python:3.12-slim`,
		Args:    someImages,
		RunE: func(command *cobra.Command, args []string) error {
			names, err := imageNames(args)
			if err != nil {
				return err
			}
			want, err := platform(on)
			if err != nil {
				return err
			}
			store, home, err := a.imageStore()
			if err != nil {
				return err
			}
			registries, err := imagestore.ReadRegistries(home.Path(laptop.RegistriesFile))
			if err != nil {
				return err
			}
			var keychain authn.Keychain = authn.DefaultKeychain
			if slices.ContainsFunc(names, func(n imagestore.Name) bool { return maybeOwn(n.Registry) }) {
				own, done, err := laptop.UseRegistry(command.Context(), home)
				if err != nil {
					return err
				}
				defer done()
				keychain = authn.NewMultiKeychain(own, keychain)
			}
			for _, name := range names {
				show := a.transfer(name.Familiar())
				image, err := store.Pull(command.Context(), name, imagestore.PullOptions{
					Platform: want, Keychain: keychain, Registries: registries, Progress: show.Step,
				})
				show.End()
				if err != nil {
					return err
				}
				if _, err := fmt.Fprintln(a.streams.Out, image.ID()); err != nil {
					return err
				}
			}
			return nil
		},
	}
	command.Flags().StringVar(&on, "platform", "", "platform of the image, such as linux/arm64 (default this machine's)")
	return command
}

// imagesLoad returns the command that reads archives.
func (a *app) imagesLoad() *cobra.Command {
	var on, socket string
	command := &cobra.Command{
		Use:   "load [FILE|DIRECTORY]",
		Short: "Load images from an archive or a Docker daemon",
		Long: `Load reads images from an archive of docker save, plain or compressed, or from an
OCI layout, a directory or a tar file. Without an argument it reads standard input. With
--daemon it takes the named images from a Docker daemon or Podman's service.`,
		Example: `  docker save acme/train | diwan images load
  diwan images load train.tar
  diwan images load --daemon /var/run/docker.sock acme/train`,
		Args: func(_ *cobra.Command, args []string) error {
			if socket == "" && len(args) > 1 {
				return Usagef("want one archive, not %d", len(args))
			}
			if socket != "" {
				return someImages(nil, args)
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			want, err := platform(on)
			if err != nil {
				return err
			}
			store, _, err := a.imageStore()
			if err != nil {
				return err
			}
			show := a.transfer("images")
			options := imagestore.LoadOptions{Platform: want, Progress: show.Step}
			var loaded []*imagestore.Image
			switch {
			case socket != "":
				names, bad := imageNames(args)
				if bad != nil {
					return bad
				}
				loaded, err = store.LoadDaemon(command.Context(), socket, options, names...)
			case len(args) == 0 || args[0] == "-":
				loaded, err = store.LoadReader(command.Context(), a.streams.In, options)
			default:
				loaded, err = store.Load(command.Context(), args[0], options)
			}
			show.End()
			if err != nil {
				return err
			}
			for _, image := range loaded {
				names := image.Names()
				if len(names) == 0 {
					names = []string{image.Digest()}
				}
				if _, err := fmt.Fprintln(a.streams.Out, strings.Join(names, "\n")); err != nil {
					return err
				}
			}
			return nil
		},
	}
	command.Flags().StringVar(&socket, "daemon", "", "unix socket of a Docker daemon, such as /var/run/docker.sock, to take the named images from")
	command.Flags().StringVar(&on, "platform", "", "which image to load of several platforms, such as linux/arm64 (default this machine's)")
	return command
}

// imagesSave returns the command that writes archives.
func (a *app) imagesSave() *cobra.Command {
	var path string
	command := &cobra.Command{
		Use:   "save IMAGE... [-f FILE]",
		Short: "Save images to an archive",
		Long: `Save writes images to a tar file that is an OCI layout, and that docker load reads.
Without -f it writes to standard output.`,
		Example:           `  diwan images save docker.io/library/python:3.12-slim -f python.tar`,
		Args:              someImages,
		ValidArgsFunction: a.completePulled,
		RunE: func(command *cobra.Command, args []string) error {
			names, err := imageNames(args)
			if err != nil {
				return err
			}
			store, _, err := a.imageStore()
			if err != nil {
				return err
			}
			if path == "" {
				if isTerminal(a.streams.Out) {
					return Usagef("will not write an archive to a terminal: use -f FILE, or redirect the output")
				}
				return store.Save(command.Context(), a.streams.Out, names...)
			}
			return saveFile(path, func(w io.Writer) error { return store.Save(command.Context(), w, names...) })
		},
	}
	command.Flags().StringVarP(&path, "file", "f", "", "file to write (default standard output)")
	return command
}

// saveFile writes a file that is there whole or not at all.
func saveFile(path string, write func(io.Writer) error) error {
	file, err := os.OpenFile(path+".partial", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return fmt.Errorf("cannot write the archive: %w", err)
	}
	defer os.Remove(file.Name())
	if err := errors.Join(write(file), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return fmt.Errorf("cannot write the archive: %w", err)
	}
	return nil
}

// imagesRemove returns the command that removes images.
func (a *app) imagesRemove() *cobra.Command {
	return &cobra.Command{
		Use:               "remove IMAGE...",
		Aliases:           []string{"rm"},
		Short:             "Remove pulled images",
		Args:              someImages,
		ValidArgsFunction: a.completePulled,
		RunE: func(_ *cobra.Command, args []string) error {
			names, err := imageNames(args)
			if err != nil {
				return err
			}
			store, home, err := a.imageStore()
			if err != nil {
				return err
			}
			used, err := laptop.ImagesInUse(home)
			if err != nil {
				return err
			}
			for _, name := range names {
				image, err := store.Find(name)
				if err != nil {
					return err
				}
				if by := used(image); by != "" {
					return fmt.Errorf("cannot remove the image %s: container %s runs in it; delete its Pod first", name.Familiar(), by)
				}
				if err := store.Remove(name); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// imagesPrune returns the command that removes what nothing needs.
func (a *app) imagesPrune() *cobra.Command {
	var age time.Duration
	command := &cobra.Command{
		Use:   "prune",
		Short: "Remove images that no container runs in",
		Long: `Prune removes the pulled images that no container runs in and that were not used for
a while. A running cluster does so by itself when images are old or need much space.`,
		Example:           `  diwan images prune --older-than 1h`,
		Args:              NoArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			store, home, err := a.imageStore()
			if err != nil {
				return err
			}
			pruned, err := pruneImages(command.Context(), store, home, age)
			if err != nil {
				return err
			}
			for _, name := range pruned.Images {
				fmt.Fprintln(a.streams.Out, name)
			}
			if !a.options.quiet {
				fmt.Fprintf(a.streams.Err, "removed %d images with %s; %s remain\n", len(pruned.Images), megabytes(pruned.Bytes), megabytes(pruned.Left))
			}
			return nil
		},
	}
	command.Flags().DurationVar(&age, "older-than", 24*time.Hour, "keep images that were used more recently")
	return command
}

func pruneImages(ctx context.Context, store *imagestore.Store, home laptop.Home, age time.Duration) (imagestore.Pruned, error) {
	used, err := laptop.ImagesInUse(home)
	if err != nil {
		return imagestore.Pruned{}, err
	}
	return store.Prune(ctx, imagestore.PruneOptions{
		InUse: func(i *imagestore.Image) bool { return used(i) != "" }, MinAge: age, All: true,
	})
}

// imageDetails is what inspect prints of an image.
type imageDetails struct {
	ID       string         `json:"id"`
	Names    []string       `json:"names,omitempty"`
	Digest   string         `json:"digest"`
	Size     int64          `json:"size"`
	Pulled   time.Time      `json:"pulled"`
	Used     time.Time      `json:"used"`
	Layers   []string       `json:"layers"`
	Config   *v1.ConfigFile `json:"config"`
	Manifest *v1.Manifest   `json:"manifest"`
}

// imagesInspect returns the command that shows an image.
func (a *app) imagesInspect() *cobra.Command {
	return &cobra.Command{
		Use:               "inspect IMAGE",
		Short:             "Show a pulled image as JSON",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completePulled,
		RunE: func(_ *cobra.Command, args []string) error {
			names, err := imageNames(args)
			if err != nil {
				return err
			}
			store, _, err := a.imageStore()
			if err != nil {
				return err
			}
			image, err := store.Find(names[0])
			if err != nil {
				return err
			}
			d := imageDetails{
				ID: image.ID(), Names: image.Names(), Digest: image.Digest(), Size: image.Size(),
				Pulled: image.Created(), Used: image.Used(), Layers: image.Layers(),
			}
			if d.Config, err = image.Config(); err != nil {
				return err
			}
			if d.Manifest, err = image.Manifest(); err != nil {
				return err
			}
			out := json.NewEncoder(a.streams.Out)
			out.SetIndent("", "  ")
			return out.Encode(d)
		},
	}
}

// imagesTag returns the command that gives an image another name.
func (a *app) imagesTag() *cobra.Command {
	return &cobra.Command{
		Use:               "tag IMAGE NAME",
		Short:             "Give a pulled image another name",
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: a.completePulled,
		RunE: func(_ *cobra.Command, args []string) error {
			names, err := imageNames(args)
			if err != nil {
				return err
			}
			store, _, err := a.imageStore()
			if err != nil {
				return err
			}
			return store.Tag(names[0], names[1])
		},
	}
}

// completePulled completes the names of pulled images.
func (a *app) completePulled(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	store, _, err := a.imageStore()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	images, err := store.List()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for _, image := range images {
		for _, name := range image.Names() {
			if parsed, err := imagestore.ParseName(name); err == nil {
				names = append(names, parsed.Familiar())
			}
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
