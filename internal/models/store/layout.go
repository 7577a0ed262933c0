// SPDX-License-Identifier: Apache-2.0

package store

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"diwan.dev/diwan/internal/models/artifact"
)

// layout is an OCI image layout: a folder, or a tar of one.
type layout struct {
	dir     string
	file    *os.File
	members map[string]*io.SectionReader
}

func openLayout(path string) (*layout, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return &layout{dir: path}, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	l := &layout{file: f, members: map[string]*io.SectionReader{}}
	archive := tar.NewReader(f)
	for {
		h, err := archive.Next()
		if err == io.EOF {
			return l, nil
		}
		if err == nil && len(l.members) > artifact.MaxLayers*2 {
			err = fmt.Errorf("it has more than %d files", artifact.MaxLayers*2)
		}
		var at int64
		if err == nil {
			at, err = f.Seek(0, io.SeekCurrent) // tar reads no further than the header
		}
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("it is not a tar file of an OCI layout: %w", err)
		}
		if h.Typeflag == tar.TypeReg {
			l.members[strings.TrimPrefix(h.Name, "./")] = io.NewSectionReader(f, at, h.Size)
		}
	}
}

func (l *layout) close() {
	if l.file != nil {
		l.file.Close()
	}
}

// open opens a file of the layout, whose name is the layout's own or of a digest that was checked.
func (l *layout) open(name string) (io.ReadSeekCloser, error) {
	if l.file == nil {
		return os.Open(filepath.Join(l.dir, filepath.FromSlash(name)))
	}
	m := l.members[name]
	if m == nil {
		return nil, fmt.Errorf("it has no file %s", name)
	}
	return struct {
		io.ReadSeeker
		io.Closer
	}{io.NewSectionReader(m, 0, m.Size()), io.NopCloser(nil)}, nil
}

func (l *layout) read(name string) ([]byte, error) {
	f, err := l.open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, artifact.MaxManifest+1))
	if err == nil && len(b) > artifact.MaxManifest {
		err = fmt.Errorf("%s has more than %d bytes", name, artifact.MaxManifest)
	}
	return b, err
}

// Import brings a model of an OCI image layout into the store: path is a folder, or a tar file of one. If it
// has several, reference is the tag or the digest of the one that is meant.
func (s *Store) Import(ctx context.Context, path, reference string, n Name) (*Version, error) {
	v, err := s.importLayout(ctx, path, reference, n)
	if err != nil {
		return nil, fmt.Errorf("cannot import %s as %s: %w", path, n, err)
	}
	return v, nil
}

func (s *Store) importLayout(ctx context.Context, path, reference string, n Name) (*Version, error) {
	l, err := openLayout(path)
	if err != nil {
		return nil, err
	}
	defer l.close()
	text, err := l.read(ocispec.ImageIndexFile)
	if err != nil {
		return nil, err
	}
	var index ocispec.Index
	if err := json.Unmarshal(text, &index); err != nil {
		return nil, fmt.Errorf("its index.json is malformed: %w", err)
	}
	var found []ocispec.Descriptor
	for _, d := range index.Manifests {
		tag := d.Annotations[ocispec.AnnotationRefName]
		if reference == "" || reference == string(d.Digest) || reference == tag || strings.HasSuffix(tag, ":"+reference) {
			found = append(found, d)
		}
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("it has %d manifests that may be meant: name one by its tag or digest with --reference", len(found))
	}
	if err := artifact.CheckDigest(found[0].Digest); err != nil {
		return nil, err
	}
	raw, err := l.read("blobs/sha256/" + found[0].Digest.Encoded())
	if err != nil {
		return nil, err
	}
	if digest.FromBytes(raw) != found[0].Digest {
		return nil, fmt.Errorf("%w: its manifest", ErrDigest)
	}
	m, err := artifact.Parse(raw)
	if err != nil {
		return nil, err
	}
	u, err := s.Use(ctx)
	if err != nil {
		return nil, err
	}
	defer u.Close()
	for _, d := range m.Blobs() {
		err := u.Receive(ctx, d, func(w io.Writer, offset int64) error {
			f, err := l.open("blobs/sha256/" + d.Digest.Encoded())
			if err != nil {
				return err
			}
			defer f.Close()
			if _, err := f.Seek(offset, io.SeekStart); err != nil {
				return err
			}
			_, err = io.CopyBuffer(w, struct{ io.Reader }{f}, make([]byte, copyBuffer))
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	d, err := u.Put(ctx, raw)
	if err != nil {
		return nil, err
	}
	return u.Name(ctx, n, d)
}

// WriteLayout writes a version as a tar file of an OCI image layout.
func (s *Store) WriteLayout(ctx context.Context, v *Version, to io.Writer) error {
	u, err := s.Use(ctx)
	if err != nil {
		return err
	}
	defer u.Close()
	index := ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Manifests: []ocispec.Descriptor{{
		MediaType: ocispec.MediaTypeImageManifest, ArtifactType: v.Manifest.ArtifactType, Digest: v.Manifest.Digest, Size: int64(len(v.Manifest.Raw)),
		Annotations: map[string]string{ocispec.AnnotationRefName: v.Name.Reference()},
	}}}
	text, err := json.Marshal(index)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(to)
	write := func(name string, size int64, r io.Reader) error {
		if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644}); err != nil {
			return err
		}
		_, err := io.Copy(archive, r)
		return err
	}
	err = errors.Join(
		write(ocispec.ImageLayoutFile, 30, strings.NewReader(`{"imageLayoutVersion":"1.0.0"}`)),
		write(ocispec.ImageIndexFile, int64(len(text)), strings.NewReader(string(text))),
		write("blobs/sha256/"+v.Manifest.Digest.Encoded(), int64(len(v.Manifest.Raw)), strings.NewReader(string(v.Manifest.Raw))),
	)
	for _, d := range v.Manifest.Blobs() {
		if err != nil || ctx.Err() != nil {
			break
		}
		var f *os.File
		if f, err = u.Open(d); err == nil {
			err = write("blobs/sha256/"+d.Digest.Encoded(), d.Size, f)
			f.Close()
		}
	}
	if err = errors.Join(err, ctx.Err()); err == nil {
		err = archive.Close()
	}
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", v.Name, err)
	}
	return nil
}
