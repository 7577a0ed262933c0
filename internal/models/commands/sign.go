// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"diwan.dev/diwan/internal/models/signing"
	"diwan.dev/diwan/internal/platform/cli"
)

// passwordVariable is where cosign, too, looks for the password of a key.
const passwordVariable = "COSIGN_PASSWORD"

func newRequest(ctx context.Context, url string) (*http.Request, error) {
	return http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
}

// sign returns the command that signs models.
func sign(streams cli.Streams) *cobra.Command {
	var key string
	var annotations map[string]string
	command := &cobra.Command{
		Use:   "sign NAME --key FILE",
		Short: "Sign a model at a registry with a key, as cosign does",
		Long: `Sign adds a signature of a model's manifest to the registry, which cosign verify --key
verifies, too. The key is one of cosign generate-key-pair or diwan model key; its password
is in COSIGN_PASSWORD, or asked for.`,
		Example: `  diwan model sign ghcr.io/acme/mnist:v1 --key cosign.key`,
		Args:    arguments(1, 1, "one name"),
		RunE: with(streams, func(ctx context.Context, s *session, args []string) error {
			n, err := name(args[0])
			if err != nil {
				return err
			}
			text, err := readKey(key)
			if err != nil {
				return err
			}
			password, err := s.keyPassword()
			if err != nil {
				return err
			}
			private, err := signing.ParsePrivateKey(text, password)
			if err != nil {
				return fmt.Errorf("cannot use the key %s: %w", key, err)
			}
			o, at, done, err := s.registries(ctx, n)
			if err != nil {
				return err
			}
			defer done()
			n = at(n)
			digest, err := signing.Sign(ctx, n, private, annotations, o)
			if err != nil {
				return err
			}
			return s.print(map[string]string{"name": n.String(), "digest": digest}, fmt.Sprintf("signed %s@%s", n, digest))
		}),
	}
	command.Flags().StringVar(&key, "key", "", "file with the private key")
	command.Flags().StringToStringVarP(&annotations, "annotation", "a", nil, "KEY=VALUE to sign along; repeat for more")
	command.MarkFlagFilename("key", "key")
	return command
}

// verify returns the command that verifies signatures.
func verify(streams cli.Streams) *cobra.Command {
	var key string
	var annotations map[string]string
	command := &cobra.Command{
		Use:   "verify NAME --key FILE",
		Short: "Verify that a model at a registry is signed by a key",
		Long: `Verify checks the signatures of a model's manifest by a public key, as diwan model sign and
cosign sign --key with --tlog-upload=false make them. It fails if none is valid, and prints
the digest that was signed: use the model by this.`,
		Example: `  diwan model verify ghcr.io/acme/mnist:v1 --key cosign.pub`,
		Args:    arguments(1, 1, "one name"),
		RunE: with(streams, func(ctx context.Context, s *session, args []string) error {
			n, err := name(args[0])
			if err != nil {
				return err
			}
			text, err := readKey(key)
			if err != nil {
				return err
			}
			public, err := signing.ParsePublicKey(text)
			if err != nil {
				return fmt.Errorf("cannot use the key %s: %w", key, err)
			}
			o, at, done, err := s.registries(ctx, n)
			if err != nil {
				return err
			}
			defer done()
			valid, err := signing.Verify(ctx, at(n), public, annotations, o)
			if err != nil {
				return err
			}
			return s.print(valid, "verified "+valid[0].Digest)
		}),
	}
	command.Flags().StringVar(&key, "key", "", "file with the public key")
	command.Flags().StringToStringVarP(&annotations, "annotation", "a", nil, "KEY=VALUE that must have been signed along; repeat for more")
	command.MarkFlagFilename("key", "pub", "pem")
	return command
}

// generateKey returns the command that makes a key pair.
func generateKey(streams cli.Streams) *cobra.Command {
	return &cobra.Command{
		Use:     "key PREFIX",
		Short:   "Make a key pair for signatures, as cosign generate-key-pair does",
		Example: `  diwan model key cosign     # cosign.key, encrypted with a password, and cosign.pub`,
		Args:    arguments(1, 1, "one prefix of file names"),
		RunE: with(streams, func(_ context.Context, s *session, args []string) error {
			password, err := s.keyPassword()
			if err != nil {
				return err
			}
			private, public, err := signing.GenerateKey(password)
			if err != nil {
				return err
			}
			if err := writeNew(args[0]+".key", private, 0o600); err != nil {
				return err
			}
			if err := writeNew(args[0]+".pub", public, 0o644); err != nil {
				return err
			}
			return s.print(map[string]string{"private": args[0] + ".key", "public": args[0] + ".pub"}, args[0]+".key\n"+args[0]+".pub")
		}),
	}
}

// writeNew writes a file that must not exist.
func writeNew(path string, text []byte, mode os.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

func (s *session) keyPassword() ([]byte, error) {
	if password, ok := os.LookupEnv(passwordVariable); ok {
		return []byte(password), nil
	}
	password, err := s.password("password of the key: ", false)
	if err != nil {
		return nil, fmt.Errorf("cannot ask for the key's password, set %s: %w", passwordVariable, err)
	}
	return []byte(password), nil
}

// readKey reads a key in a file.
func readKey(path string) ([]byte, error) {
	if path == "" {
		return nil, cli.Usagef("no key: name its file with --key")
	}
	if strings.Contains(path, "://") {
		return nil, cli.Usagef("cannot use --key %s: it must be a file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxPassword))
}
