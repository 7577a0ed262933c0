// SPDX-License-Identifier: Apache-2.0

package store

import (
	"archive/tar"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"

	"diwan.dev/diwan/internal/models/artifact"
	"diwan.dev/diwan/internal/models/signature"
	"diwan.dev/diwan/internal/platform/durable"
)

// SaveOptions say how a model is saved.
type SaveOptions struct {
	// Kind is what is written: ModelPack, which "" is, or ORMB.
	Kind artifact.Kind
	// Annotations are added to the manifest.
	Annotations map[string]string
	// Progress is told how many bytes were read, of how many; it may be called concurrently. nil is none.
	Progress func(done, total int64)
}

// saveFiles is how many files are read at a time.
const saveFiles = 4

// maxSignature bounds the signature in a manifest.
const maxSignature = 256 << 10

// skipped are files and folders that are no part of a model.
var skipped = map[string]bool{".git": true, ".DS_Store": true, "__pycache__": true, ".ipynb_checkpoints": true, ".cache": true, stagingDir: true}

// source is a folder, or a file, that is saved.
type source struct {
	dir   string
	files []sourceFile
	total int64
	done  atomic.Int64
}

type sourceFile struct {
	name string // with slashes
	info fs.FileInfo
}

// Save brings a file or a folder into the store as a version of a model. A folder with an ormbfile.yaml is
// described by that. Files that were saved before and have not changed since are not read again. Links to
// files count as the files; links to folders are an error.
func (s *Store) Save(ctx context.Context, dir string, n Name, o SaveOptions) (*Version, error) {
	v, err := s.save(ctx, dir, n, o)
	if err != nil {
		return nil, fmt.Errorf("cannot save %s as %s: %w", dir, n, err)
	}
	return v, nil
}

func (s *Store) save(ctx context.Context, dir string, n Name, o SaveOptions) (*Version, error) {
	if n.Digest != "" {
		return nil, errors.New("a version is saved under a tag, not a digest")
	}
	src, err := newSource(dir)
	if err != nil {
		return nil, err
	}
	metadata, err := artifact.ReadORMBFile(os.DirFS(src.dir))
	described := err == nil
	if errors.Is(err, fs.ErrNotExist) {
		metadata, err = &artifact.Metadata{}, nil
	}
	if err != nil {
		return nil, err
	}
	payload := dir
	if info, err := os.Stat(filepath.Join(dir, artifact.ModelDir)); err == nil && info.IsDir() {
		payload = filepath.Join(dir, artifact.ModelDir)
	}
	u, err := s.Use(ctx)
	if err != nil {
		return nil, err
	}
	defer u.Close()
	read, err := signature.ReadPath(ctx, payload, signature.Options{})
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil { // a model of which nothing is known can be saved all the same
		read = nil
	}
	p := &packing{Use: u, source: src, metadata: metadata, described: described, signature: read, options: o}
	var manifest []byte
	switch o.Kind {
	case "", artifact.ModelPack:
		manifest, err = p.modelPack(ctx)
	case artifact.ORMB:
		manifest, err = p.ormb(ctx)
	default:
		err = fmt.Errorf("artifacts of the kind %q cannot be written, only modelpack and ormb", o.Kind)
	}
	if err != nil {
		return nil, err
	}
	d, err := u.Put(ctx, manifest)
	if err != nil {
		return nil, err
	}
	return u.Name(ctx, n, d)
}

func newSource(dir string) (*source, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		if !info.Mode().IsRegular() {
			return nil, errors.New("it is neither a file nor a folder")
		}
		return &source{dir: filepath.Dir(dir), files: []sourceFile{{filepath.Base(dir), info}}, total: info.Size()}, nil
	}
	s := &source{dir: dir}
	err = filepath.WalkDir(dir, func(full string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if full != dir && skipped[e.Name()] {
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if e.IsDir() {
			return nil
		}
		name, err := filepath.Rel(dir, full)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		info, err := os.Stat(full)
		switch {
		case err != nil:
			return err
		case info.IsDir():
			return fmt.Errorf("%s is a link to a folder: replace it by the folder", name)
		case !info.Mode().IsRegular():
			return fmt.Errorf("%s is neither a file nor a folder: remove it", name)
		}
		if err := artifact.CheckPath(name); err != nil {
			return err
		}
		s.files = append(s.files, sourceFile{name, info})
		if len(s.files) > artifact.MaxLayers {
			return fmt.Errorf("it has more than %d files", artifact.MaxLayers)
		}
		s.total += info.Size()
		return nil
	})
	if err == nil && len(s.files) == 0 {
		err = errors.New("the folder has no files")
	}
	return s, err
}

// packing is one call of Save.
type packing struct {
	*Use
	source    *source
	metadata  *artifact.Metadata
	described bool // by an ormbfile.yaml
	signature *signature.Signature
	options   SaveOptions
}

func (p *packing) progress(n int64) {
	done := p.source.done.Add(n)
	if p.options.Progress != nil {
		p.options.Progress(done, p.source.total)
	}
}

// annotations are those of the manifest.
func (p *packing) annotations() map[string]string {
	all := map[string]string{}
	if p.signature != nil {
		short := *p.signature
		short.Tensors = nil
		text, err := json.Marshal(short)
		if err == nil && len(text) > maxSignature {
			short.Files, short.Functions, short.Metadata, short.Classes, short.Features, short.Callables = nil, nil, nil, nil, nil, nil
			short.Notes = append(slices.Clone(short.Notes), "shortened: the signature has more than 256 KiB")
			text, err = json.Marshal(short)
		}
		if err == nil && len(text) <= maxSignature {
			all[artifact.AnnotationSignature] = string(text)
		}
	}
	if p.described && p.options.Kind != artifact.ORMB {
		short := *p.metadata
		short.Signature, short.DirectoryStructure = nil, nil
		if text, err := json.Marshal(short); err == nil && len(text) <= maxSignature {
			all[artifact.AnnotationMetadata] = string(text)
		}
	}
	for k, v := range p.options.Annotations {
		all[k] = v
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// modelPack makes a layer of each file.
func (p *packing) modelPack(ctx context.Context) ([]byte, error) {
	seen := p.readSeen()
	layers := make([]ocispec.Descriptor, len(p.source.files))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(saveFiles)
	for i, f := range p.source.files {
		group.Go(func() error {
			d, err := p.keep(ctx, f, seen)
			if err != nil {
				return fmt.Errorf("cannot read %s: %w", f.name, err)
			}
			layers[i] = d
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if err := p.writeSeen(seen); err != nil {
		return nil, err
	}
	c := artifact.Config{}
	created := p.metadata.Created
	if created.IsZero() {
		created = time.Now().UTC().Truncate(time.Second)
	}
	c.Descriptor.CreatedAt = &created
	c.Descriptor.Description = p.metadata.Description
	if p.metadata.Author != "" {
		c.Descriptor.Authors = []string{p.metadata.Author}
	}
	if p.metadata.Training != nil {
		c.Descriptor.SourceURL, c.Descriptor.Revision = p.metadata.Training.Git.Repository, p.metadata.Training.Git.Revision
	}
	c.Config.Format = p.metadata.Format
	if p.signature != nil {
		c.Describe(p.signature)
	}
	config, manifest, err := artifact.Pack(c, layers, p.annotations())
	if err != nil {
		return nil, err
	}
	_, err = p.Put(ctx, config)
	return manifest, err
}

// keep brings a file into the store.
func (p *packing) keep(ctx context.Context, f sourceFile, seen *seen) (ocispec.Descriptor, error) {
	if err := ctx.Err(); err != nil {
		return ocispec.Descriptor{}, context.Cause(ctx)
	}
	metadata := artifact.FileMetadata{
		Name: f.name, Mode: uint32(f.info.Mode().Perm()), Size: f.info.Size(), ModTime: f.info.ModTime().UTC(), Typeflag: tar.TypeReg,
	}
	if d, known := seen.find(f.info); known && p.Has(ocispec.Descriptor{Digest: d, Size: f.info.Size()}) {
		p.progress(f.info.Size())
		return artifact.RawLayer(f.name, d, metadata)
	}
	start := time.Now()
	from, err := os.Open(filepath.Join(p.source.dir, filepath.FromSlash(f.name)))
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	defer from.Close()
	d, err := p.adopt(func(to *os.File, hash io.Writer) (int64, error) {
		if clone(to, from) == nil {
			return p.count(ctx, hash, from)
		}
		return p.count(ctx, io.MultiWriter(&early{File: to}, hash), from)
	})
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	now, err := from.Stat()
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	if now.Size() != f.info.Size() || !now.ModTime().Equal(f.info.ModTime()) {
		return ocispec.Descriptor{}, errors.New("it changed while it was saved: save the model again")
	}
	seen.add(now, d.Digest, start)
	return artifact.RawLayer(f.name, d.Digest, metadata)
}

// adopt makes a blob of what fill gives to a file and to a hash. fill returns its size.
func (p *packing) adopt(fill func(f *os.File, hash io.Writer) (int64, error)) (d ocispec.Descriptor, err error) {
	f, err := os.OpenFile(p.path("work", durable.TempPrefix+rand.Text()), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return d, err
	}
	defer f.Close()
	hash := sha256.New()
	d.Size, err = fill(f, hash)
	d.Digest = digest.NewDigest(digest.SHA256, hash)
	if err != nil || p.Has(d) {
		return d, errors.Join(err, os.Remove(f.Name()))
	}
	if err := p.publish(f, d.Digest); err != nil {
		return d, errors.Join(err, os.Remove(f.Name()))
	}
	return d, nil
}

// early is a file that the kernel writes while it grows.
type early struct {
	*os.File
	size, started int64
}

// Write appends.
func (e *early) Write(p []byte) (int, error) {
	n, err := e.File.Write(p)
	if e.size += int64(n); e.size-e.started >= writeStep {
		durable.StartWriting(e.File, e.started, e.size-e.started)
		e.started = e.size
	}
	return n, err
}

// copyBuffer is how much is read at a time.
const copyBuffer = 1 << 20

// count copies a file, and tells how far it is.
func (p *packing) count(ctx context.Context, to io.Writer, from *os.File) (int64, error) {
	buffer := make([]byte, copyBuffer)
	var total int64
	for {
		if ctx.Err() != nil {
			return total, context.Cause(ctx)
		}
		n, err := from.Read(buffer)
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return total, err
			}
			total += int64(n)
			p.progress(int64(n))
		}
		if err == io.EOF {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}

// ormb makes one archive of the folder model/, as ormb does.
func (p *packing) ormb(ctx context.Context) ([]byte, error) {
	root := filepath.Join(p.source.dir, artifact.ModelDir)
	if info, err := os.Stat(root); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("ormb packs the folder %s/ beside %s, and there is none", artifact.ModelDir, artifact.ORMBFile)
	}
	p.metadata.Describe(p.signature)
	if p.metadata.Format == "" {
		p.metadata.Format = "Others"
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if err := artifact.CheckORMB(p.metadata.Format, names); err != nil {
		return nil, err
	}
	var files []sourceFile
	p.source.total, p.metadata.DirectoryStructure = 0, nil
	for _, f := range p.source.files {
		if strings.HasPrefix(f.name, artifact.ModelDir+"/") {
			files = append(files, f)
			p.source.total += f.info.Size()
			p.metadata.DirectoryStructure = append(p.metadata.DirectoryStructure, f.name)
		}
	}
	layer, err := p.adopt(func(f *os.File, hash io.Writer) (int64, error) { return p.archive(ctx, f, hash, files) })
	if err != nil {
		return nil, err
	}
	config, manifest, err := artifact.PackORMB(p.metadata, artifact.ORMBLayer(layer), p.annotations())
	if err != nil {
		return nil, err
	}
	_, err = p.Put(ctx, config)
	return manifest, err
}

// archive writes a tar.gz, the same of the same files, and returns its size.
func (p *packing) archive(ctx context.Context, f *os.File, hash io.Writer, files []sourceFile) (int64, error) {
	zip, err := gzip.NewWriterLevel(io.MultiWriter(f, hash), gzip.BestSpeed)
	if err != nil {
		return 0, err
	}
	archive := tar.NewWriter(zip)
	for _, file := range files {
		if err := p.archiveFile(ctx, archive, file); err != nil {
			return 0, fmt.Errorf("cannot pack %s: %w", file.name, err)
		}
	}
	if err := archive.Close(); err != nil {
		return 0, err
	}
	if err := zip.Close(); err != nil {
		return 0, err
	}
	return f.Seek(0, io.SeekCurrent)
}

func (p *packing) archiveFile(ctx context.Context, archive *tar.Writer, file sourceFile) error {
	f, err := os.Open(filepath.Join(p.source.dir, filepath.FromSlash(file.name)))
	if err != nil {
		return err
	}
	defer f.Close()
	err = archive.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: file.name, Size: file.info.Size(), Mode: int64(file.info.Mode().Perm()), ModTime: file.info.ModTime().Truncate(time.Second),
	})
	if err != nil {
		return err
	}
	_, err = p.count(ctx, archive, f) // a file that grew or shrank meanwhile is an error of tar's
	return err
}
