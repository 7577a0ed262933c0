// SPDX-License-Identifier: Apache-2.0

package imagepush

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// archive is the image in a tar file that is an OCI layout.
type archive struct {
	files      map[string]*io.SectionReader
	descriptor v1.Descriptor // the manifest's
	manifest   *v1.Manifest
}

// openArchive opens what the store has saved, a single image. Layers that are not compressed
// stay so if plain is set.
func openArchive(file *os.File, plain bool) (v1.Image, error) {
	a := &archive{files: map[string]*io.SectionReader{}}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	in := tar.NewReader(file)
	for {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		at, err := file.Seek(0, io.SeekCurrent)
		if err != nil {
			return nil, err
		}
		a.files[header.Name] = io.NewSectionReader(file, at, header.Size)
	}
	var index v1.IndexManifest
	if err := a.json("index.json", &index); err != nil {
		return nil, err
	}
	if len(index.Manifests) != 1 {
		return nil, fmt.Errorf("the archive has %d images instead of one", len(index.Manifests))
	}
	a.descriptor = index.Manifests[0]
	if err := a.json(blob(a.descriptor.Digest), &a.manifest); err != nil {
		return nil, err
	}
	uncompressed := slices.ContainsFunc(a.manifest.Layers, func(l v1.Descriptor) bool { return l.MediaType == types.OCIUncompressedLayer })
	if uncompressed && !plain {
		size, err := file.Seek(0, io.SeekEnd)
		if err != nil {
			return nil, err
		}
		return tarball.Image(func() (io.ReadCloser, error) { return io.NopCloser(io.NewSectionReader(file, 0, size)), nil }, nil)
	}
	return partial.CompressedToImage(a)
}

func blob(digest v1.Hash) string { return path.Join("blobs", digest.Algorithm, digest.Hex) }

// open returns a file's content; its readers may be used concurrently.
func (a *archive) open(name string) (*io.SectionReader, error) {
	file := a.files[name]
	if file == nil {
		return nil, fmt.Errorf("the archive has no %s", name)
	}
	return io.NewSectionReader(file, 0, file.Size()), nil
}

func (a *archive) bytes(name string) ([]byte, error) {
	file, err := a.open(name)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(file)
}

func (a *archive) json(name string, to any) error {
	text, err := a.bytes(name)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}

// RawConfigFile implements [partial.CompressedImageCore].
func (a *archive) RawConfigFile() ([]byte, error) { return a.bytes(blob(a.manifest.Config.Digest)) }

// MediaType implements [partial.CompressedImageCore].
func (a *archive) MediaType() (types.MediaType, error) { return a.descriptor.MediaType, nil }

// RawManifest implements [partial.CompressedImageCore].
func (a *archive) RawManifest() ([]byte, error) { return a.bytes(blob(a.descriptor.Digest)) }

// LayerByDigest implements [partial.CompressedImageCore].
func (a *archive) LayerByDigest(digest v1.Hash) (partial.CompressedLayer, error) {
	i := slices.IndexFunc(a.manifest.Layers, func(l v1.Descriptor) bool { return l.Digest == digest })
	if i < 0 {
		return nil, fmt.Errorf("the image has no layer %s", digest)
	}
	return layer{a, a.manifest.Layers[i]}, nil
}

// layer is a layer as a registry has it, compressed or not.
type layer struct {
	archive    *archive
	descriptor v1.Descriptor
}

// Digest implements [partial.CompressedLayer].
func (l layer) Digest() (v1.Hash, error) { return l.descriptor.Digest, nil }

// Size implements [partial.CompressedLayer].
func (l layer) Size() (int64, error) { return l.descriptor.Size, nil }

// MediaType implements [partial.CompressedLayer].
func (l layer) MediaType() (types.MediaType, error) { return l.descriptor.MediaType, nil }

// Compressed implements [partial.CompressedLayer].
func (l layer) Compressed() (io.ReadCloser, error) {
	file, err := l.archive.open(blob(l.descriptor.Digest))
	if err != nil {
		return nil, err
	}
	return io.NopCloser(file), nil
}
