// SPDX-License-Identifier: Apache-2.0

package imagestore

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	layoutFile    = "oci-layout"
	indexFile     = "index.json"
	dockerFile    = "manifest.json" // of docker save
	refAnnotation = "org.opencontainers.image.ref.name"
	// nameAnnotation is containerd's and Docker's, with the full name.
	nameAnnotation = "io.containerd.image.name"
	// maxFiles bounds the files of an archive.
	maxFiles = 100_000
)

// LoadOptions say how archives are loaded. The zero value loads for this machine.
type LoadOptions struct {
	// Platform is which image of an index is loaded; zero is [DefaultPlatform].
	Platform v1.Platform
	// Progress is called now and then; never concurrently.
	Progress func(Progress)
	// MaxBytes and MaxEntries bound the files of each image; 0 is 256 GiB and 4 million.
	MaxBytes   int64
	MaxEntries int64
}

// Load brings the images of an archive into the store: of a tar file that docker save wrote, plain or
// compressed by gzip or zstd, or of an OCI layout, a directory or a tar file. They get the names that
// the archive gives them. An image without a name is found by its digest.
func (s *Store) Load(ctx context.Context, path string, o LoadOptions) ([]*Image, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("cannot load images: %w", err)
	}
	if info.IsDir() {
		root, err := os.OpenRoot(path)
		if err != nil {
			return nil, fmt.Errorf("cannot load images: %w", err)
		}
		defer root.Close()
		return s.load(ctx, path, &dirArchive{root}, o)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("cannot load images: %s is neither a file nor a directory", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot load images: %w", err)
	}
	defer f.Close()
	return s.loadFile(ctx, path, f, o)
}

// LoadReader is Load from a stream, which is first written to the store's directory.
func (s *Store) LoadReader(ctx context.Context, r io.Reader, o LoadOptions) ([]*Image, error) {
	f, err := s.spool(ctx, r, o)
	if err != nil {
		return nil, fmt.Errorf("cannot load images: %w", err)
	}
	defer f.Close()
	return s.loadFile(ctx, "the stream", f, o)
}

// loadFile loads a tar file.
func (s *Store) loadFile(ctx context.Context, name string, f *os.File, o LoadOptions) ([]*Image, error) {
	plain, closePlain, err := decompress(io.NewSectionReader(f, 0, 1<<62))
	if err != nil {
		return nil, fmt.Errorf("cannot load images from %s: %w", name, err)
	}
	defer closePlain()
	head := make([]byte, 4)
	compressed := false
	if n, _ := f.ReadAt(head, 0); n == 4 {
		compressed = head[0] == 0x1f && head[1] == 0x8b || string(head) == "\x28\xb5\x2f\xfd"
	}
	if compressed {
		if f, err = s.spool(ctx, plain, o); err != nil {
			return nil, fmt.Errorf("cannot load images from %s: %w", name, err)
		}
		defer f.Close()
	}
	a, err := newTarArchive(ctx, f)
	if err != nil {
		return nil, fmt.Errorf("cannot load images from %s: %w", name, err)
	}
	return s.load(ctx, name, a, o)
}

// spool writes a stream to a file without a name.
func (s *Store) spool(ctx context.Context, r io.Reader, o LoadOptions) (*os.File, error) {
	f, err := os.CreateTemp(s.path("trash"), "")
	if err != nil {
		return nil, err
	}
	os.Remove(f.Name())
	limit := o.MaxBytes
	if limit <= 0 {
		limit = defaultMaxBytes
	}
	n, err := io.Copy(f, io.LimitReader(&contextReader{ctx: ctx, r: r}, limit+1))
	if err == nil && n > limit {
		err = failf(TooLarge, "it has more than %d bytes", limit)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// contextReader ends a stream with its context.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

// Read reads.
func (r *contextReader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.r.Read(p)
}

// archive is a set of files.
type archive interface {
	// open opens a file. It fails with fs.ErrNotExist if there is none.
	open(name string) (io.ReadCloser, int64, error)
}

// dirArchive is a directory.
type dirArchive struct{ root *os.Root }

func (d *dirArchive) open(name string) (io.ReadCloser, int64, error) {
	info, err := d.root.Stat(name)
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, failf(Corrupt, "%s is not a file", name)
	}
	f, err := d.root.Open(name)
	if err != nil {
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// tarArchive is a tar file.
type tarArchive struct {
	file  *os.File
	files map[string]section
	links map[string]string
}

type section struct{ at, size int64 }

// newTarArchive finds the files in a tar file.
func newTarArchive(ctx context.Context, f *os.File) (*tarArchive, error) {
	a := &tarArchive{file: f, files: make(map[string]section), links: make(map[string]string)}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	r := &offsetReader{r: f}
	for tr := tar.NewReader(r); ; {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		hdr, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, failf(Corrupt, "it is not a tar file, or damaged: %w", err)
		}
		if len(a.files)+len(a.links) >= maxFiles {
			return nil, failf(TooLarge, "it has more than %d files", maxFiles)
		}
		name := path.Clean("/" + hdr.Name)[1:]
		switch hdr.Typeflag {
		case tar.TypeReg:
			if isSparse(hdr) {
				return nil, failf(Unsupported, "%.100q is a sparse file", hdr.Name)
			}
			a.files[name] = section{at: r.n, size: hdr.Size}
		case tar.TypeSymlink: // of layers that images share, by old versions of Docker
			a.links[name] = path.Join("/"+path.Dir(name), hdr.Linkname)[1:]
		case tar.TypeLink:
			a.links[name] = path.Clean("/" + hdr.Linkname)[1:]
		}
	}
	return a, nil
}

func isSparse(hdr *tar.Header) bool {
	for k := range hdr.PAXRecords {
		if strings.HasPrefix(k, "GNU.sparse.") {
			return true
		}
	}
	return false
}

// offsetReader knows how far it has read or skipped.
type offsetReader struct {
	r io.ReadSeeker
	n int64
}

// Read reads.
func (r *offsetReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	r.n += int64(n)
	return n, err
}

// Seek skips.
func (r *offsetReader) Seek(offset int64, whence int) (int64, error) {
	n, err := r.r.Seek(offset, whence)
	if err == nil {
		r.n = n
	}
	return n, err
}

func (a *tarArchive) open(name string) (io.ReadCloser, int64, error) {
	name = path.Clean("/" + name)[1:]
	for range 10 {
		if s, ok := a.files[name]; ok {
			return io.NopCloser(io.NewSectionReader(a.file, s.at, s.size)), s.size, nil
		}
		target, ok := a.links[name]
		if !ok {
			break
		}
		name = target
	}
	return nil, 0, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// has reports whether an archive has a file.
func has(a archive, name string) bool {
	r, _, err := a.open(name)
	if err == nil {
		r.Close()
	}
	return !errors.Is(err, fs.ErrNotExist)
}

// readArchive reads a small file of an archive.
func readArchive(a archive, name string, limit int64) ([]byte, error) {
	r, size, err := a.open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if size > limit {
		return nil, failf(TooLarge, "%s has %d bytes, and may have at most %d", abbreviate(name), size, limit)
	}
	return io.ReadAll(io.LimitReader(r, limit))
}

// load loads all images of an archive.
func (s *Store) load(ctx context.Context, name string, a archive, o LoadOptions) ([]*Image, error) {
	if o.Platform.OS == "" {
		o.Platform = DefaultPlatform()
	}
	var additions []addition
	var err error
	switch {
	case has(a, indexFile):
		additions, err = layoutImages(a, o.Platform)
	case has(a, dockerFile):
		additions, err = dockerImages(a, o.Platform)
	default:
		err = failf(Unsupported, "it is neither an OCI layout (no %s) nor from docker save (no %s)", indexFile, dockerFile)
	}
	if err == nil && len(additions) == 0 {
		err = failf(NotFound, "it has no images")
	}
	if err != nil {
		return nil, &Error{Kind: KindOf(err), Name: "in " + name, Err: err}
	}
	var all []*Image
	for _, add := range additions {
		add.progress = &progress{report: o.Progress}
		add.maxBytes, add.maxEntries = o.MaxBytes, o.MaxEntries
		img, err := s.add(ctx, add)
		if err != nil {
			kind := KindOf(err)
			if ctx.Err() != nil {
				kind = Canceled
			}
			return all, &Error{Kind: kind, Name: "in " + name, Err: err}
		}
		all = append(all, img)
	}
	return all, nil
}

// layout reads the blobs of an OCI layout (github.com/opencontainers/image-spec image-layout.md).
type layout struct{ archive }

func blobPath(digest string) string { return "blobs/sha256/" + digestHex(digest) }

func (l layout) blob(d v1.Descriptor, limit int64) ([]byte, error) {
	if err := checkDescriptor(d, limit); err != nil {
		return nil, err
	}
	b, err := readArchive(l, blobPath(d.Digest.String()), limit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, failf(Corrupt, "the blob %s is missing", d.Digest)
	}
	if err == nil && digestOf(b) != d.Digest.String() {
		err = failf(Corrupt, "the blob %s has another digest", d.Digest)
	}
	return b, err
}

// open opens a layer.
func (l layout) openLayer(digest string) (io.ReadCloser, int64, error) {
	return l.archive.open(blobPath(digest))
}

// layoutImages are the images of an OCI layout.
func layoutImages(a archive, platform v1.Platform) ([]addition, error) {
	raw, err := readArchive(a, indexFile, maxManifest)
	if err != nil {
		return nil, err
	}
	top, err := parseDocument(raw, "")
	if err != nil {
		return nil, err
	}
	if top.index == nil {
		return nil, failf(Corrupt, "its %s is not an index", indexFile)
	}
	l := layout{a}
	var all []addition
	for _, desc := range top.index.Manifests {
		if desc.Platform != nil && desc.Platform.OS == "unknown" || desc.MediaType != "" && !isManifestType(desc.MediaType) {
			continue
		}
		// Without names, images for other platforms are not what is meant.
		if len(top.index.Manifests) > 1 && desc.Platform != nil && rank(*desc.Platform, platform) < 0 {
			continue
		}
		names, err := layoutNames(desc)
		if err != nil {
			return nil, err
		}
		target := desc.Digest.String()
		var d *document
		for range maxIndexes {
			raw, err := l.blob(desc, maxManifest)
			if err != nil {
				return nil, err
			}
			if d, err = parseDocument(raw, string(desc.MediaType)); err != nil {
				return nil, err
			}
			if d.manifest != nil {
				break
			}
			if desc, err = choose(d.index, platform); err != nil {
				return nil, err
			}
		}
		if d.manifest == nil {
			return nil, failf(Unsupported, "its indexes are nested more than %d deep", maxIndexes)
		}
		if err := checkManifest(d.manifest); err != nil {
			return nil, err
		}
		config, err := l.blob(d.manifest.Config, maxConfig)
		if err != nil {
			return nil, err
		}
		c, err := parseConfig(config, d.manifest, platform)
		if err != nil {
			return nil, err
		}
		add := addition{manifest: d, config: config, layers: layerSpecs(d.manifest, c), source: archiveSource{l.openLayer}}
		for _, n := range names {
			add.names = append(add.names, nameRecord{Name: n.String(), Target: target, Manifest: d.digest},
				nameRecord{Name: n.withDigest(target).String(), Target: target, Manifest: d.digest})
		}
		// An image with several names is listed once for each.
		if i := slices.IndexFunc(all, func(o addition) bool { return o.manifest.digest == d.digest }); i >= 0 {
			all[i].names = append(all[i].names, add.names...)
		} else {
			all = append(all, add)
		}
	}
	return all, nil
}

// layoutNames are the names that a layout gives an image. A reference without a repository is a tag of
// nothing in particular, and no name.
func layoutNames(d v1.Descriptor) ([]Name, error) {
	name := d.Annotations[nameAnnotation]
	if name == "" {
		name = d.Annotations[refAnnotation]
		if !strings.ContainsAny(name, "/:") {
			return nil, nil
		}
	}
	n, err := ParseName(name)
	if err != nil {
		return nil, as(InvalidName, err)
	}
	if n.Digest != "" {
		return nil, nil
	}
	return []Name{n}, nil
}

// dockerImages are the images of an archive that docker save wrote before it wrote layouts
// (github.com/moby/moby image/spec).
func dockerImages(a archive, platform v1.Platform) ([]addition, error) {
	raw, err := readArchive(a, dockerFile, maxManifest)
	if err != nil {
		return nil, err
	}
	var saved []struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	if err := json.Unmarshal(raw, &saved); err != nil {
		return nil, failf(Corrupt, "its %s is malformed: %w", dockerFile, err)
	}
	if len(saved) > maxManifests {
		return nil, failf(TooLarge, "it has more than %d images", maxManifests)
	}
	var all []addition
	for _, img := range saved {
		config, err := readArchive(a, img.Config, maxConfig)
		if err != nil {
			return nil, as(Corrupt, fmt.Errorf("cannot read its configuration: %w", err))
		}
		// Such archives have no manifests. The layers are known by the digests of their content.
		m := &v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1}
		m.Config = descriptor(types.OCIConfigJSON, digestOf(config), int64(len(config)))
		for range img.Layers {
			m.Layers = append(m.Layers, v1.Descriptor{MediaType: types.OCIUncompressedLayer})
		}
		c, err := parseConfig(config, m, platform)
		if err != nil {
			return nil, err
		}
		paths := make(map[string]string) // by diffID
		for i, p := range img.Layers {
			r, size, err := a.open(p)
			if err != nil {
				return nil, as(Corrupt, fmt.Errorf("cannot read its layer %d: %w", i+1, err))
			}
			r.Close()
			diffID := c.RootFS.DiffIDs[i].String()
			m.Layers[i] = descriptor(types.OCIUncompressedLayer, diffID, size)
			paths[diffID] = p
		}
		if err := checkManifest(m); err != nil {
			return nil, err
		}
		rawManifest, err := json.Marshal(m)
		if err != nil {
			return nil, err
		}
		add := addition{
			manifest: &document{digest: digestOf(rawManifest), raw: rawManifest, manifest: m}, config: config,
			layers: layerSpecs(m, c),
			source: archiveSource{func(digest string) (io.ReadCloser, int64, error) { return a.open(paths[digest]) }},
		}
		for i := range add.layers {
			add.layers[i].blob = "" // compressed, perhaps: only what is inside is known
		}
		for _, tag := range img.RepoTags {
			n, err := ParseName(tag)
			if err != nil {
				return nil, as(InvalidName, err)
			}
			add.names = append(add.names, nameRecord{Name: n.String(), Target: add.manifest.digest, Manifest: add.manifest.digest},
				nameRecord{Name: n.withDigest(add.manifest.digest).String(), Target: add.manifest.digest, Manifest: add.manifest.digest})
		}
		all = append(all, add)
	}
	return all, nil
}

func descriptor(t types.MediaType, digest string, size int64) v1.Descriptor {
	return v1.Descriptor{MediaType: t, Digest: v1.Hash{Algorithm: "sha256", Hex: digestHex(digest)}, Size: size}
}

// archiveSource provides layers from an archive.
type archiveSource struct {
	layer func(digest string) (io.ReadCloser, int64, error)
}

func (a archiveSource) distrust() bool { return false }

// open opens a layer. It is kept in partial for the case that it cannot be written again from what is
// unpacked.
func (a archiveSource) open(ctx context.Context, l layerSpec, partial string) (blobReader, error) {
	digest := l.blob
	if digest == "" {
		digest = l.diffID
	}
	r, _, err := a.layer(digest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, failf(Corrupt, "the layer %s is missing", digest)
	}
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(partial, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		r.Close()
		return nil, err
	}
	return &teeBlob{Reader: io.TeeReader(&contextReader{ctx: ctx, r: r}, f), closers: []io.Closer{r, f}}, nil
}

// teeBlob is a blob that is copied while it is read.
type teeBlob struct {
	io.Reader
	closers []io.Closer
}

func (b *teeBlob) resumed() bool { return false }

// Close closes.
func (b *teeBlob) Close() error {
	var errs []error
	for _, c := range b.closers {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}
