// SPDX-License-Identifier: Apache-2.0

package store

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/errgroup"

	"diwan.dev/diwan/internal/models/artifact"
	"diwan.dev/diwan/internal/platform/durable"
)

// ExportOptions say how a model is exported.
type ExportOptions struct {
	// Link makes files hard links to the store's blobs where that is possible. They need no space and cannot
	// be written to; who changes them nevertheless damages the store.
	Link bool
	// MaxBytes bounds what archives unpack to. 0 is a GiB and a hundred times the size of the archives.
	MaxBytes int64
}

// stagingDir is where an export puts files until all of them are there.
const stagingDir = ".diwan-export"

const (
	maxEntries   = 1_000_000
	maxRatio     = 100
	maxUnpacking = 1 << 30
	exportFiles  = 4
)

// Export writes the files of a version to a folder, which is made if it does not exist. Files of the same
// names are replaced. No file appears before all of them are complete.
func (s *Store) Export(ctx context.Context, v *Version, dir string, o ExportOptions) error {
	if err := s.export(ctx, v, dir, o); err != nil {
		return fmt.Errorf("cannot export %s to %s: %w", v.Name, dir, err)
	}
	return nil
}

func (s *Store) export(ctx context.Context, v *Version, dir string, o ExportOptions) (err error) {
	u, err := s.Use(ctx)
	if err != nil {
		return err
	}
	defer u.Close()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	staging := filepath.Join(dir, stagingDir)
	l, err := durable.LockDir(ctx, staging)
	if err != nil {
		return err
	}
	defer l.Close()
	if err := emptyDir(staging); err != nil { // what a killed export left
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(staging)) }()
	e := &export{Use: u, root: root, staging: staging, options: o, names: map[string]string{}}
	e.left = o.MaxBytes
	if e.left == 0 {
		e.left = maxUnpacking
		for _, f := range v.Manifest.Files {
			e.left += min(f.Size, 1<<50) * maxRatio
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(exportFiles)
	for _, f := range v.Manifest.Files {
		group.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if f.Tar {
				return e.unpack(ctx, f)
			}
			return e.file(f)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := e.metadata(v.Manifest); err != nil {
		return err
	}
	return e.publish()
}

// emptyDir removes all that is in a directory.
func emptyDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// export is one call of Export.
type export struct {
	*Use
	root    *os.Root
	staging string
	options ExportOptions

	mu    sync.Mutex
	names map[string]string // staged files by the names that they get
	left  int64             // bytes that archives may still have
}

// stage makes the name of a file that is on its way.
func (e *export) stage(name string) (string, error) {
	if err := artifact.CheckPath(name); err != nil {
		return "", err
	}
	if name == stagingDir || strings.HasPrefix(name, stagingDir+"/") {
		return "", fmt.Errorf("the file name %q is Diwan's own", name)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.names[name] != "" {
		return "", fmt.Errorf("the file %q is there twice", name)
	}
	if len(e.names) >= maxEntries {
		return "", fmt.Errorf("it has more than %d files", maxEntries)
	}
	e.names[name] = strconv.Itoa(len(e.names))
	return filepath.Join(e.staging, e.names[name]), nil
}

// file exports a blob that is a file.
func (e *export) file(l artifact.Layer) error {
	to, err := e.stage(l.Path)
	if err != nil {
		return err
	}
	from, err := e.Open(l.Descriptor)
	if err != nil {
		return err
	}
	defer from.Close()
	if e.options.Link && os.Link(e.blobPath(l.Digest), to) == nil {
		return nil
	}
	mode, modified := fs.FileMode(0o644), time.Time{}
	if l.File != nil {
		mode, modified = fs.FileMode(l.File.Mode)&0o777|0o600, l.File.ModTime
	}
	return write(to, mode, modified, func(f *os.File) error {
		if clone(f, from) == nil {
			return nil
		}
		_, err := io.Copy(f, from) // in the kernel, where that can
		return err
	})
}

func write(name string, mode fs.FileMode, modified time.Time, fill func(*os.File) error) error {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := fill(f); err != nil {
		return err
	}
	if err := f.Chmod(mode); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if modified.IsZero() {
		return nil
	}
	return os.Chtimes(name, modified, modified)
}

// unpack exports the files of an archive.
func (e *export) unpack(ctx context.Context, l artifact.Layer) error {
	from, err := e.Open(l.Descriptor)
	if err != nil {
		return err
	}
	defer from.Close()
	var stream io.Reader = from
	switch l.Compression {
	case artifact.Gzip:
		stream, err = gzip.NewReader(from)
	case artifact.Zstd:
		var z *zstd.Decoder
		if z, err = zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20), zstd.WithDecoderMaxWindow(64<<20)); err == nil {
			defer z.Close()
			stream = z
		}
	}
	if err != nil {
		return fmt.Errorf("its layer %s is not compressed as it says: %w", l.Digest, err)
	}
	archive := tar.NewReader(&budgeted{export: e, ctx: ctx, from: stream})
	for entries := 0; ; entries++ {
		h, err := archive.Next()
		if err == io.EOF {
			return nil
		}
		if err == nil && entries >= maxEntries {
			err = fmt.Errorf("it has more than %d entries", maxEntries)
		}
		if err == nil {
			err = e.entry(archive, h)
		}
		if err != nil {
			return fmt.Errorf("cannot unpack its layer %s: %w", l.Digest, err)
		}
	}
}

func (e *export) entry(archive *tar.Reader, h *tar.Header) error {
	name := strings.TrimSuffix(strings.TrimPrefix(h.Name, "./"), "/")
	switch h.Typeflag {
	case tar.TypeDir:
		if name == "" || name == "." {
			return nil
		}
		return artifact.CheckPath(name) // folders appear with their files
	case tar.TypeReg:
	default:
		return fmt.Errorf("%q is a link or a device, which models do not have: it is refused", cmp.Or(name, h.Name))
	}
	to, err := e.stage(name)
	if err != nil {
		return err
	}
	return write(to, fs.FileMode(h.Mode)&0o777|0o600, h.ModTime, func(f *os.File) error {
		if err := e.spend(h.Size); err != nil { // of a sparse file, more than the archive has
			return err
		}
		_, err := io.Copy(f, archive)
		return err
	})
}

func (e *export) spend(n int64) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n > e.left {
		return errors.New("its archives unpack to far more than their size: if you trust it, allow more with --max-size")
	}
	e.left -= n
	return nil
}

// budgeted reads a stream that is paid for by the headers of its files and by what is between these.
type budgeted struct {
	*export
	ctx  context.Context
	from io.Reader
	read int64
}

// Read fails beyond twice the bound: what is skipped, such as padding, is read, too.
func (b *budgeted) Read(p []byte) (int, error) {
	if b.ctx.Err() != nil {
		return 0, context.Cause(b.ctx)
	}
	n, err := b.from.Read(p)
	b.read += int64(n)
	if b.read >= 1<<20 {
		if err := b.spend(b.read / 2); err != nil {
			return 0, err
		}
		b.read = 0
	}
	return n, err
}

// metadata writes the file that the model's format has beside its files.
func (e *export) metadata(m *artifact.Manifest) error {
	var name string
	var text []byte
	config, err := e.Bytes(m.Config, artifact.MaxConfig)
	switch {
	case err != nil || m.Kind == artifact.ModelPack:
		return err
	case m.Kind == artifact.ORMB:
		name = artifact.ORMBFile
		var metadata *artifact.Metadata
		if metadata, err = artifact.ORMBMetadata(config); err == nil {
			text, err = metadata.YAML()
		}
	default:
		name = artifact.KitFile
		text, err = artifact.Kitfile(config)
	}
	if err != nil || e.names[name] != "" { // the archive has its own
		return err
	}
	to, err := e.stage(name)
	if err != nil {
		return err
	}
	return write(to, 0o644, time.Time{}, func(f *os.File) error { _, err := f.Write(text); return err })
}

// publish gives the files their names. Links in the folder are not followed out of it.
func (e *export) publish() error {
	if err := artifact.CheckPaths(slices.Collect(maps.Keys(e.names))); err != nil {
		return err
	}
	for name, staged := range e.names {
		if dir := path.Dir(name); dir != "." {
			if err := e.root.MkdirAll(filepath.FromSlash(dir), 0o755); err != nil {
				return err
			}
		}
		if err := e.root.Rename(filepath.Join(stagingDir, staged), filepath.FromSlash(name)); err != nil {
			return err
		}
	}
	return nil
}
