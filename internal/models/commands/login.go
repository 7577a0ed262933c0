// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/docker/cli/cli/config"
	"github.com/docker/cli/cli/config/types"
	"github.com/google/go-containerregistry/pkg/authn"
	regname "github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"diwan.dev/diwan/internal/platform/cli"
	"diwan.dev/diwan/internal/platform/imagepush"
	"diwan.dev/diwan/internal/platform/imagestore"
	"diwan.dev/diwan/internal/platform/laptop"
)

// maxPassword bounds what is read as a password.
const maxPassword = 64 << 10

// login returns the command that logs in at registries.
func login(streams cli.Streams) *cobra.Command {
	var user string
	var stdin bool
	command := &cobra.Command{
		Use:   "login HOST",
		Short: "Log in at a registry",
		Long: `Login checks credentials at a registry, and keeps them in Docker's configuration, by its
credential helper if it names one. Docker, Podman, ormb and oras use them, too.

The password is asked for, or read from standard input: other users can see command lines.`,
		Example: `  diwan model login ghcr.io -u acme
  echo "$TOKEN" | diwan model login ghcr.io -u acme --password-stdin`,
		Args: arguments(1, 1, "one host"),
		RunE: with(streams, func(ctx context.Context, s *session, args []string) error {
			if user == "" {
				return cli.Usagef("no user name: give one with -u")
			}
			password, err := s.password("password: ", stdin)
			if err != nil {
				return err
			}
			if password == "" {
				return cli.Usagef("the password is empty")
			}
			registries, err := imagestore.ReadRegistries(s.Home.Path(laptop.RegistriesFile))
			if err != nil {
				return err
			}
			if err := check(ctx, registries, args[0], user, password); err != nil {
				return fmt.Errorf("cannot log in at %s: %w", args[0], err)
			}
			file, err := config.Load(os.Getenv("DOCKER_CONFIG"))
			if err != nil {
				return fmt.Errorf("cannot read Docker's configuration: %w", err)
			}
			key := dockerKey(args[0])
			err = file.GetCredentialsStore(key).Store(types.AuthConfig{ServerAddress: key, Username: user, Password: password})
			if err == nil {
				err = file.Save()
			}
			if err != nil {
				return fmt.Errorf("cannot keep the credentials in Docker's configuration: %w", err)
			}
			s.note("logged in at %s; the credentials are in %s", args[0], file.Filename)
			return nil
		}),
	}
	command.Flags().StringVarP(&user, "username", "u", "", "user name")
	command.Flags().BoolVar(&stdin, "password-stdin", false, "read the password from standard input")
	return command
}

// dockerKey is a registry in Docker's configuration.
func dockerKey(host string) string {
	if host == "docker.io" || host == "index.docker.io" {
		return "https://index.docker.io/v1/"
	}
	return host
}

// check asks the registry whether credentials are right.
func check(ctx context.Context, registries imagestore.Registries, host, user, password string) error {
	reached, err := imagepush.Reach(registries, host)
	if err != nil {
		return err
	}
	registry, err := regname.NewRegistry(host, reached.Options...)
	if err != nil {
		return err
	}
	through, err := transport.NewWithContext(ctx, registry, &authn.Basic{Username: user, Password: password}, reached.Transport, nil)
	if err != nil {
		return err
	}
	req, err := newRequest(ctx, registry.Scheme()+"://"+registry.RegistryStr()+"/v2/")
	if err != nil {
		return err
	}
	resp, err := through.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return transport.CheckError(resp, 200)
}

// password reads a secret, from a terminal without showing it.
func (s *session) password(prompt string, stdin bool) (string, error) {
	if in, ok := s.streams.In.(*os.File); ok && !stdin && term.IsTerminal(int(in.Fd())) {
		fmt.Fprint(s.streams.Err, prompt)
		secret, err := term.ReadPassword(int(in.Fd()))
		fmt.Fprintln(s.streams.Err)
		return string(secret), err
	}
	if !stdin {
		return "", cli.Usagef("standard input is not a terminal: use --password-stdin")
	}
	text, err := bufio.NewReader(io.LimitReader(s.streams.In, maxPassword)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return strings.TrimRight(text, "\r\n"), nil
}

// logout returns the command that forgets credentials.
func logout(streams cli.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "logout HOST",
		Short: "Forget the credentials for a registry",
		Args:  arguments(1, 1, "one host"),
		RunE: with(streams, func(_ context.Context, s *session, args []string) error {
			file, err := config.Load(os.Getenv("DOCKER_CONFIG"))
			if err != nil {
				return fmt.Errorf("cannot read Docker's configuration: %w", err)
			}
			key := dockerKey(args[0])
			if err := file.GetCredentialsStore(key).Erase(key); err != nil {
				return fmt.Errorf("cannot forget the credentials for %s: %w", args[0], err)
			}
			s.note("logged out of %s", args[0])
			return file.Save()
		}),
	}
}
