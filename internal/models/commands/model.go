// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/spf13/cobra"

	"diwan.dev/diwan/internal/models/store"
	"diwan.dev/diwan/internal/models/transfer"
	"diwan.dev/diwan/internal/platform/cli"
	"diwan.dev/diwan/internal/platform/imagestore"
	"diwan.dev/diwan/internal/platform/laptop"
)

// storeDir is the directory of the store in the home.
const storeDir = "models"

// model returns the commands about models.
func model(streams cli.Streams) *cobra.Command {
	command := &cobra.Command{
		Use:   "model",
		Short: "Save, version, inspect and ship models through OCI registries",
		Long: `Models are saved as versions in the home, and pushed to and pulled from any OCI registry. A
name is [HOST/]REPOSITORY[:TAG]; without a host it is in the home's own registry.

Diwan writes artifacts of the CNCF's ModelPack, or ormb's, and reads these and KitOps'.
Registries are reached as for images: by registries.yaml in the home, and the credentials
of Docker's configuration.`,
		Example: `  diwan model save ./mnist mnist:v1
  diwan model inspect mnist:v1
  diwan model push mnist:v1 ghcr.io/acme/mnist:v1`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.Usagef("unknown command %q: see `diwan model --help`", args[0])
			}
			return nil
		},
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(initialize(streams), save(streams), list(streams), inspect(streams), tag(streams), diff(streams),
		remove(streams), prune(streams), export(streams), importCommand(streams),
		push(streams), pull(streams), copyCommand(streams), login(streams), logout(streams),
		sign(streams), verify(streams), generateKey(streams), compressCommand(streams), mlflowRegistry(streams))
	return command
}

// session is one call of a command.
type session struct {
	cli.Global
	streams cli.Streams
	store   *store.Store
}

// with makes the body of a command: it gets the store and a context that the user can end.
func with(streams cli.Streams, run func(ctx context.Context, s *session, args []string) error) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, args []string) error {
		global, err := cli.GlobalOf(command)
		if err != nil {
			return err
		}
		ctx, release := cli.Interruptible(command.Context())
		defer release()
		opened, err := store.Open(global.Home.Path(storeDir))
		if err != nil {
			return err
		}
		err = run(ctx, &session{global, streams, opened}, args)
		if err != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	}
}

// print prints a result: as JSON, or as text.
func (s *session) print(v any, text string) error {
	if s.JSON {
		b, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			return err
		}
		text = string(b)
	}
	if text == "" {
		return nil
	}
	_, err := fmt.Fprintln(s.streams.Out, text)
	return err
}

// note says something that is not the result.
func (s *session) note(format string, args ...any) {
	if !s.Quiet {
		fmt.Fprintf(s.streams.Err, format+"\n", args...)
	}
}

// name reads the name of a model.
func name(text string) (store.Name, error) {
	n, err := store.ParseName(text)
	if err != nil {
		return n, cli.Usagef("%w", err)
	}
	return n, nil
}

func names(texts []string) ([]store.Name, error) {
	var all []store.Name
	for _, text := range texts {
		n, err := name(text)
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, nil
}

// find finds a version in the store.
func (s *session) find(text string) (*store.Version, error) {
	n, err := name(text)
	if err != nil {
		return nil, err
	}
	v, err := s.store.Find(n)
	if err != nil {
		return nil, fmt.Errorf("%w; `diwan model list` shows what it has, `diwan model pull %s` gets it", err, text)
	}
	return v, nil
}

// registries reaches registries. at completes names without a host, of which there are some if any is
// without or may be the home's registry. done ends it.
func (s *session) registries(ctx context.Context, all ...store.Name) (o transfer.Options, at func(store.Name) store.Name, done func(), err error) {
	at, done = func(n store.Name) store.Name { return n }, func() {}
	if o.Registries, err = imagestore.ReadRegistries(s.Home.Path(laptop.RegistriesFile)); err != nil {
		return o, at, done, err
	}
	o.Keychain = authn.DefaultKeychain
	for _, n := range all {
		if n.Registry != "" && !strings.HasPrefix(n.Registry, "localhost:") && !strings.HasPrefix(n.Registry, "127.0.0.1:") {
			continue
		}
		own, end, err := laptop.UseRegistry(ctx, s.Home)
		if err != nil {
			return o, at, done, err
		}
		o.Keychain = authn.NewMultiKeychain(own, o.Keychain)
		return o, func(n store.Name) store.Name { return n.At(own.Host) }, end, nil
	}
	return o, at, done, nil
}

// arguments demands between least and most arguments, which usage describes.
func arguments(least, most int, usage string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return cli.Usagef("want %s, not %d arguments", usage, len(args))
		}
		return nil
	}
}

// complete completes the names of versions, as the arguments from the first to the last.
func complete(first, last int) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(command *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) < first || len(args) > last {
			return nil, cobra.ShellCompDirectiveDefault
		}
		global, err := cli.GlobalOf(command)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		opened, err := store.Open(global.Home.Path(storeDir))
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		versions, err := opened.List()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var found []string
		for _, v := range versions {
			found = append(found, v.Name.String())
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// size is a number of bytes as people read it.
func size(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.1f GB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%d B", n)
}
