// SPDX-License-Identifier: Apache-2.0

package imagestore

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/zstd"

	"diwan.dev/diwan/internal/platform/imagestore/unpack"
)

// savedImage is an element of Docker's manifest.json.
type savedImage struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// Save writes images to a tar file that is an OCI layout and at once what docker load reads. Layers are
// written as the store has them: as the blobs that came from the registry where all of an image's are
// kept, else uncompressed, and then with a manifest of their own, and the same configuration.
func (s *Store) Save(ctx context.Context, w io.Writer, names ...Name) error {
	if len(names) == 0 {
		return errors.New("cannot save images: no names are given")
	}
	// Protects the images for as long as they are written.
	var protect []string
	var images []*Image
	for _, n := range names {
		img, err := s.Find(n)
		if err != nil {
			return err
		}
		images = append(images, img)
		protect = append(append(protect, img.record.Manifest, img.record.Config), img.record.Layers...)
	}
	held, err := s.newLease(ctx, protect...)
	if err != nil {
		return fmt.Errorf("cannot save images: %w", err)
	}
	defer held.release()
	sv := &saver{store: s, w: tar.NewWriter(w), written: make(map[string]bool)}
	for i, img := range images {
		if err := sv.image(ctx, names[i], img); err != nil {
			return fmt.Errorf("cannot save the image %s: %w", names[i], err)
		}
	}
	if err := sv.finish(); err != nil {
		return fmt.Errorf("cannot save images: %w", err)
	}
	return nil
}

// saver writes an archive.
type saver struct {
	store   *Store
	w       *tar.Writer
	written map[string]bool // by path
	index   v1.IndexManifest
	docker  []savedImage
}

// image writes an image.
func (s *saver) image(ctx context.Context, n Name, img *Image) error {
	m, err := img.Manifest()
	if err != nil {
		return err
	}
	config, err := s.store.blob(img.record.Config)
	if err != nil {
		return err
	}
	var infos []layerInfo
	kept := true
	for _, chain := range img.record.Layers {
		info, err := s.store.layerInfo(chain)
		if err != nil {
			return err
		}
		infos = append(infos, info)
	}
	for i, info := range infos {
		// The same content may have come from another blob.
		kept = kept && info.Kept && info.Blob == m.Layers[i].Digest.String()
	}
	raw, err := s.store.blob(img.record.Manifest)
	if err != nil {
		return err
	}
	if !kept {
		m = m.DeepCopy()
		m.MediaType, m.Config.MediaType = types.OCIManifestSchema1, types.OCIConfigJSON
		for i, info := range infos {
			m.Layers[i] = descriptor(types.OCIUncompressedLayer, info.DiffID, info.Stream)
		}
		if raw, err = json.Marshal(m); err != nil {
			return err
		}
	}
	if err := s.file(blobPath(img.record.Config), config); err != nil {
		return err
	}
	saved := savedImage{Config: blobPath(img.record.Config)}
	for i, info := range infos {
		path := blobPath(m.Layers[i].Digest.String())
		saved.Layers = append(saved.Layers, path)
		if s.written[path] {
			continue
		}
		s.written[path] = true
		if err := s.layer(ctx, path, img.record.Layers[i], info, m.Layers[i].Size, kept); err != nil {
			return err
		}
	}
	if err := s.file(blobPath(digestOf(raw)), raw); err != nil {
		return err
	}
	desc := descriptor(m.MediaType, digestOf(raw), int64(len(raw)))
	if desc.MediaType == "" {
		desc.MediaType = types.OCIManifestSchema1
	}
	if n.Digest == "" {
		desc.Annotations = map[string]string{nameAnnotation: n.String(), refAnnotation: n.Tag}
		saved.RepoTags = []string{n.Familiar()}
	}
	s.index.Manifests = append(s.index.Manifests, desc)
	same := slices.IndexFunc(s.docker, func(o savedImage) bool { return o.Config == saved.Config })
	if same >= 0 {
		s.docker[same].RepoTags = append(s.docker[same].RepoTags, saved.RepoTags...)
	} else {
		s.docker = append(s.docker, saved)
	}
	return nil
}

// layer writes a layer of size bytes: its blob, or its tar stream.
func (s *saver) layer(ctx context.Context, path, chain string, info layerInfo, size int64, blob bool) error {
	if err := s.header(path, size); err != nil {
		return err
	}
	sum := sha256.New()
	w := io.MultiWriter(s.w, sum)
	want := info.DiffID
	var err error
	switch {
	case blob:
		want = info.Blob
		err = s.copyBlob(ctx, w, chain, false)
	case info.Exact:
		err = s.replay(ctx, w, chain)
	default:
		err = s.copyBlob(ctx, w, chain, true)
	}
	if err == nil {
		if got := fmt.Sprintf("sha256:%x", sum.Sum(nil)); got != want {
			err = fmt.Errorf("it has the digest %s", got)
		}
	}
	if err != nil {
		return fmt.Errorf("the layer %s in the store is damaged: %w", want, err)
	}
	return nil
}

// replay writes a layer's tar stream again.
func (s *saver) replay(ctx context.Context, w io.Writer, chain string) error {
	f, err := os.Open(s.store.layerPath(chain, layerRecipe))
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return err
	}
	defer z.Close()
	return unpack.Replay(ctx, w, z, s.store.layerPath(chain, layerRoot))
}

// copyBlob writes a layer's blob, or what is compressed in it.
func (s *saver) copyBlob(ctx context.Context, w io.Writer, chain string, plain bool) error {
	f, err := os.Open(s.store.layerPath(chain, layerBlob))
	if err != nil {
		return err
	}
	defer f.Close()
	var r io.Reader = f
	if plain {
		z, closePlain, err := decompress(f)
		if err != nil {
			return err
		}
		defer closePlain()
		r = z
	}
	_, err = io.Copy(w, &contextReader{ctx: ctx, r: r})
	return err
}

// finish writes what lists the images.
func (s *saver) finish() error {
	s.index.SchemaVersion, s.index.MediaType = 2, types.OCIImageIndex
	index, err := json.Marshal(s.index)
	if err != nil {
		return err
	}
	docker, err := json.Marshal(s.docker)
	if err != nil {
		return err
	}
	for _, f := range []struct {
		name    string
		content []byte
	}{{layoutFile, []byte(`{"imageLayoutVersion":"1.0.0"}`)}, {indexFile, index}, {dockerFile, docker}} {
		if err := s.file(f.name, f.content); err != nil {
			return err
		}
	}
	return s.w.Close()
}

// file writes a small file unless the archive has it.
func (s *saver) file(name string, content []byte) error {
	if s.written[name] {
		return nil
	}
	s.written[name] = true
	if err := s.header(name, int64(len(content))); err != nil {
		return err
	}
	_, err := s.w.Write(content)
	return err
}

func (s *saver) header(name string, size int64) error {
	return s.w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, ModTime: time.Unix(0, 0), Format: tar.FormatPAX})
}
