// SPDX-License-Identifier: Apache-2.0

package initializer

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// title is the annotation of a layer that is one file, with its name, as ORAS
// writes it.
const title = "org.opencontainers.image.title"

// fetchImage fetches the files of an image or an artifact in an OCI registry:
// of an artifact the layers that bear a title, of an image all its files.
// Credentials are those of Docker's configuration.
func fetchImage(ctx context.Context, c Config, from *url.URL) (int, error) {
	var options []name.Option
	if c.Insecure {
		options = append(options, name.Insecure)
	}
	ref, err := name.ParseReference(from.Host+from.Path, options...)
	if err != nil {
		return 0, err
	}
	transport := remote.DefaultTransport
	if c.Client.Transport != nil {
		transport = c.Client.Transport
	}
	image, err := remote.Image(ref, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithTransport(transport))
	if err != nil {
		return 0, err
	}
	manifest, err := image.Manifest()
	if err != nil {
		return 0, err
	}
	n := 0
	for _, layer := range manifest.Layers {
		file := layer.Annotations[title]
		if file == "" || c.ignores(file) {
			continue
		}
		if err := c.save(file, layer.Size, func() (io.ReadCloser, error) { return blob(image, layer.Digest) }); err != nil {
			return n, err
		}
		n++
	}
	if n > 0 {
		return n, nil
	}
	return c.unpack(image)
}

func blob(image v1.Image, digest v1.Hash) (io.ReadCloser, error) {
	layer, err := image.LayerByDigest(digest)
	if err != nil {
		return nil, err
	}
	return layer.Compressed()
}

// unpack writes the regular files of an image.
func (c *Config) unpack(image v1.Image) (int, error) {
	files := mutate.Extract(image)
	defer files.Close()
	archive := tar.NewReader(files)
	for n := 0; ; {
		header, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF):
			return n, nil
		case err != nil:
			return n, fmt.Errorf("the image's files: %w", err)
		case header.Typeflag != tar.TypeReg:
			continue
		}
		file := strings.TrimPrefix(path.Clean("/"+header.Name), "/")
		if c.ignores(file) {
			continue
		}
		if err := c.save(file, header.Size, func() (io.ReadCloser, error) { return io.NopCloser(archive), nil }); err != nil {
			return n, err
		}
		n++
	}
}
