// SPDX-License-Identifier: Apache-2.0

package imagepush

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"diwan.dev/diwan/internal/platform/imagestore"
)

// Options say how an image is pushed.
type Options struct {
	// Dir is a directory for a temporary file that is as large as the image.
	Dir string
	// Keychain has credentials by host.
	Keychain authn.Keychain
	// Registries say how registries are reached. Mirrors are not pushed to.
	Registries imagestore.Registries
	// Progress is told how many bytes of the layers were sent, of how many; never
	// concurrently. nil is none.
	Progress func(sent, total int64)
}

// Push pushes an image of the store under a name, which has a tag, and returns the digest that the
// registry knows it by. It needs little memory. Where the store has kept a layer's blob of an image,
// the manifest and its digest stay as they were; else layers are compressed anew, except for a
// registry on this machine.
func Push(ctx context.Context, store *imagestore.Store, image, destination imagestore.Name, o Options) (digest string, err error) {
	if destination.Tag == "" || destination.Digest != "" {
		return "", fmt.Errorf("cannot push to %s: the destination needs a tag, and no digest", destination)
	}
	defer func() {
		if err != nil {
			err = explain(err, destination)
		}
	}()
	file, err := os.CreateTemp(o.Dir, "push-*.tar")
	if err != nil {
		return "", err
	}
	defer file.Close()
	if err := os.Remove(file.Name()); err != nil { // so that a kill leaves nothing behind
		return "", err
	}
	if err := store.Save(ctx, file, image); err != nil {
		return "", err
	}
	host, err := Reach(o.Registries, destination.Registry)
	if err != nil {
		return "", err
	}
	saved, err := openArchive(file, host.Loopback)
	if err != nil {
		return "", err
	}
	reference, err := name.NewTag(destination.String(), host.Options...)
	if err != nil {
		return "", err
	}
	hash, err := saved.Digest()
	if err != nil {
		return "", err
	}
	return hash.String(), write(ctx, reference, saved, host.Transport, o)
}

// write sends an image, and tells how far it is.
func write(ctx context.Context, to name.Reference, image v1.Image, through http.RoundTripper, o Options) error {
	options := []remote.Option{
		remote.WithContext(ctx), remote.WithAuthFromKeychain(o.Keychain), remote.WithTransport(through), remote.WithUserAgent("diwan"),
	}
	if o.Progress == nil {
		return remote.Write(to, image, options...)
	}
	updates := make(chan v1.Update)
	done := make(chan error, 1)
	go func() { done <- remote.Write(to, image, append(options, remote.WithProgress(updates))...) }()
	for u := range updates { // Write closes it
		if u.Error == nil {
			o.Progress(u.Complete, u.Total)
		}
	}
	return <-done
}

// explain says what was not possible, and what helps.
func explain(err error, destination imagestore.Name) error {
	var answer *transport.Error
	if errors.As(err, &answer) && (answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden) {
		return fmt.Errorf("cannot push to %s: the registry refuses it: log in with `docker login %s` as a user who may push there: %w", destination.Familiar(), destination.Registry, err)
	}
	return fmt.Errorf("cannot push to %s: %w", destination.Familiar(), err)
}
