// SPDX-License-Identifier: Apache-2.0

// Package store keeps models in a directory: versions by name, and their blobs by digest.
//
// # Directory
//
//	store.json    the format
//	blobs/HEX     manifests, configurations and layers, by SHA-256; a file of a ModelPack model is one
//	names/HASH    a name and the digest of the manifest that it means
//	work/HEX/     a blob on its way: what of it is there
//	uploads/HASH  where an upload to a registry goes on
//	seen          digests of files that were saved, by inode, size and times
//	lock          held for moments, to change names
//	use           held shared by whoever relies on blobs, and alone by [Store.Prune]
//
// Equal files are one blob, whatever versions have them.
//
// # Crashes
//
// A blob appears by a rename once it is complete, has its digest, and is on stable storage; a name once all of
// its blobs are there. What a kill leaves behind is resumed, or is garbage that [Store.Prune] removes. Locks
// are the kernel's and end with their holder.
package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"diwan.dev/diwan/internal/models/artifact"
	"diwan.dev/diwan/internal/platform/durable"
)

// ErrNotFound is wrapped by errors about versions that the store does not have.
var ErrNotFound = errors.New("the store does not have this model")

// ErrInUse is wrapped by the error of [Store.Prune] while somebody relies on blobs.
var ErrInUse = errors.New("another process saves or transfers a model")

const formatVersion = 1

// Store is a store of models. Its methods may be called concurrently, by several processes.
type Store struct{ dir string }

// Open opens the store in a directory, and makes it if it does not exist. Nobody else may enter it.
func Open(dir string) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		s := &Store{dir: dir}
		if err = s.open(); err == nil {
			return s, nil
		}
	}
	return nil, fmt.Errorf("cannot open the store of models %s: %w", dir, err)
}

func (s *Store) open() error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	if err := os.Chmod(s.dir, 0o700); err != nil {
		return err
	}
	for _, d := range []string{"blobs", "names", "work", "uploads"} {
		if err := os.Mkdir(s.path(d), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	var format struct {
		Version int `json:"version"`
	}
	err := readJSON(s.path("store.json"), &format)
	if errors.Is(err, fs.ErrNotExist) {
		format.Version = formatVersion
		return writeJSON(s.path("store.json"), format)
	}
	if err == nil && format.Version != formatVersion {
		err = fmt.Errorf("it has the format %d, and this version of Diwan knows %d", format.Version, formatVersion)
	}
	return err
}

// Dir is the store's directory.
func (s *Store) Dir() string { return s.dir }

func (s *Store) path(elem ...string) string {
	return filepath.Join(append([]string{s.dir}, elem...)...)
}

func (s *Store) blobPath(d digest.Digest) string { return s.path("blobs", d.Encoded()) }

func hashed(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Version is a model under a name.
type Version struct {
	Name Name
	// Manifest is its manifest, which was checked.
	Manifest *artifact.Manifest
	// Created is when it came into the store under this name.
	Created time.Time
}

type nameRecord struct {
	Name     string        `json:"name"`
	Manifest digest.Digest `json:"manifest"`
	Created  time.Time     `json:"created"`
}

// Find finds a version by its name.
func (s *Store) Find(n Name) (*Version, error) {
	var r nameRecord
	err := readJSON(s.path("names", hashed(n.String())), &r)
	if errors.Is(err, fs.ErrNotExist) && n.Digest != "" { // a digest is as good as the name that it came by
		return s.findDigest(n)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot find %s: %w", n, ErrNotFound)
	}
	if err == nil {
		var v *Version
		if v, err = s.version(r); err == nil {
			return v, nil
		}
	}
	return nil, fmt.Errorf("cannot read %s: %w", n, err)
}

func (s *Store) findDigest(n Name) (*Version, error) {
	all, err := s.List()
	if err != nil {
		return nil, err
	}
	for _, v := range all {
		if v.Manifest.Digest == n.Digest && v.Name.Repository == n.Repository && v.Name.Registry == n.Registry {
			return v, nil
		}
	}
	return nil, fmt.Errorf("cannot find %s: %w", n, ErrNotFound)
}

func (s *Store) version(r nameRecord) (*Version, error) {
	n, err := ParseName(r.Name)
	if err != nil {
		return nil, err
	}
	if err := artifact.CheckDigest(r.Manifest); err != nil {
		return nil, err
	}
	raw, err := s.Bytes(ocispec.Descriptor{Digest: r.Manifest, Size: -1}, artifact.MaxManifest)
	if err != nil {
		return nil, err
	}
	m, err := artifact.Parse(raw)
	if err != nil {
		return nil, err
	}
	return &Version{Name: n, Manifest: m, Created: r.Created}, nil
}

// List returns all versions, sorted by name.
func (s *Store) List() ([]*Version, error) {
	records, err := s.records()
	if err != nil {
		return nil, fmt.Errorf("cannot list the models: %w", err)
	}
	var all []*Version
	for _, r := range records {
		v, err := s.version(r)
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w; remove it with `diwan model remove %s`", r.Name, err, r.Name)
		}
		all = append(all, v)
	}
	slices.SortFunc(all, func(a, b *Version) int { return strings.Compare(a.Name.String(), b.Name.String()) })
	return all, nil
}

func (s *Store) records() ([]nameRecord, error) {
	entries, err := os.ReadDir(s.path("names"))
	if err != nil {
		return nil, err
	}
	var all []nameRecord
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), durable.TempPrefix) {
			continue
		}
		var r nameRecord
		err := readJSON(s.path("names", e.Name()), &r)
		if errors.Is(err, fs.ErrNotExist) { // removed meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// Bytes reads a small blob of at most limit bytes and checks its digest. A Size of -1 is any.
func (s *Store) Bytes(d ocispec.Descriptor, limit int64) ([]byte, error) {
	f, err := os.Open(s.blobPath(d.Digest))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if digest.FromBytes(b) != d.Digest || d.Size >= 0 && int64(len(b)) != d.Size {
		return nil, fmt.Errorf("the blob %s is damaged or has more than %d bytes: pull or save the model again", d.Digest, limit)
	}
	return b, nil
}

// Open opens a blob for reading. It stays readable whatever is removed meanwhile.
func (s *Store) Open(d ocispec.Descriptor) (*os.File, error) {
	f, err := os.Open(s.blobPath(d.Digest))
	if err != nil {
		return nil, fmt.Errorf("the store lacks the blob %s: pull or save the model again: %w", d.Digest, err)
	}
	info, err := f.Stat()
	if err == nil && info.Size() != d.Size {
		err = fmt.Errorf("the blob %s is damaged: it has %d bytes instead of %d: remove the model, and pull or save it again", d.Digest, info.Size(), d.Size)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Tag gives a version another name.
func (s *Store) Tag(ctx context.Context, from, to Name) (*Version, error) {
	u, err := s.Use(ctx)
	if err != nil {
		return nil, err
	}
	defer u.Close()
	v, err := s.Find(from)
	if err != nil {
		return nil, err
	}
	if to.Digest != "" {
		return nil, fmt.Errorf("cannot give a model the name %s: a digest is not a name", to)
	}
	return u.Name(ctx, to, v.Manifest.Digest)
}

// Remove removes a name, and what no other name needs unless somebody relies on blobs just now.
func (s *Store) Remove(ctx context.Context, n Name) error {
	l, err := durable.Lock(ctx, s.path("lock"))
	if err != nil {
		return fmt.Errorf("cannot lock the store of models: %w", err)
	}
	err = os.Remove(s.path("names", hashed(n.String())))
	if err == nil {
		err = durable.SyncDir(s.path("names"))
	}
	l.Close()
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot remove %s: %w", n, ErrNotFound)
	}
	if err != nil {
		return fmt.Errorf("cannot remove %s: %w", n, err)
	}
	if _, err := s.Prune(ctx, PruneOptions{KeepPartial: time.Hour * 24}); err != nil && !errors.Is(err, ErrInUse) {
		return err
	}
	return nil
}

func writeJSON(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return durable.WriteFile(path, append(b, '\n'))
}

// maxRecord bounds the store's own files.
const maxRecord = 64 << 20

func readJSON(path string, v any) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxRecord))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s is damaged: %w", path, err)
	}
	return nil
}
