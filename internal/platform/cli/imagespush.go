// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/spf13/cobra"

	"diwan.dev/diwan/internal/platform/imagepush"
	"diwan.dev/diwan/internal/platform/imagestore"
	"diwan.dev/diwan/internal/platform/laptop"
)

// imagesPush returns the command that pushes images.
func (a *app) imagesPush() *cobra.Command {
	return &cobra.Command{
		Use:   "push IMAGE [DESTINATION]",
		Short: "Push a pulled image to a registry",
		Long: `Push sends an image of the home to a registry, with the credentials of Docker's
configuration. A destination without a registry's host is in the home's own registry, which
needs no credentials. Push prints the name to use in manifests.`,
		Example: `  # To the home's own registry, under the same name or another.
  diwan images push acme/train
  diwan images push docker.io/library/python:3.12-slim base/python:3.12

  # To another registry.
  diwan images push acme/train ghcr.io/acme/train:v2`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return Usagef("want an image and at most one destination, not %d arguments", len(args))
			}
			return nil
		},
		ValidArgsFunction: func(command *cobra.Command, args []string, part string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 1 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return a.completePulled(command, args, part)
		},
		RunE: func(command *cobra.Command, args []string) error {
			return a.pushImage(command, args[0], args[len(args)-1])
		},
	}
}

// pushImage pushes an image to a destination.
func (a *app) pushImage(command *cobra.Command, from, to string) error {
	names, err := imageNames([]string{from})
	if err != nil {
		return err
	}
	store, home, err := a.imageStore()
	if err != nil {
		return err
	}
	if _, err := store.Find(names[0]); err != nil {
		return fmt.Errorf("%w; pull it with `diwan images pull %s`, or load it with `diwan images load`", err, from)
	}
	registries, err := imagestore.ReadRegistries(home.Path(laptop.RegistriesFile))
	if err != nil {
		return err
	}
	var keychain authn.Keychain = authn.DefaultKeychain
	host := hostOf(to)
	if host == "" || maybeOwn(host) {
		own, done, err := laptop.UseRegistry(command.Context(), home)
		if err != nil {
			return err
		}
		defer done()
		if host == "" {
			to = own.Host + "/" + to
		}
		keychain = authn.NewMultiKeychain(own, keychain)
	}
	if names, err = imageNames([]string{from, to}); err != nil {
		return err
	}
	show := a.transfer(names[1].Familiar())
	digest, err := imagepush.Push(command.Context(), store, names[0], names[1], imagepush.Options{
		Dir: home.Path(laptop.ImageDir), Keychain: keychain, Registries: registries, Progress: show.Bytes,
	})
	show.End()
	if err != nil {
		return err
	}
	if !a.options.quiet {
		fmt.Fprintf(a.streams.Err, "pushed %s\n", digest)
	}
	_, err = fmt.Fprintln(a.streams.Out, names[1].Familiar())
	return err
}

// maybeOwn reports whether a host can be the home's own registry.
func maybeOwn(host string) bool {
	return strings.HasPrefix(host, "localhost:") || strings.HasPrefix(host, "127.0.0.1:")
}

// hostOf is the registry that an image's name begins with, or "" if it begins with none.
func hostOf(image string) string {
	first, _, ok := strings.Cut(image, "/")
	if ok && (strings.ContainsAny(first, ".:") || first == "localhost" || strings.ToLower(first) != first) {
		return first
	}
	return ""
}
