// SPDX-License-Identifier: Apache-2.0

package imagestore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"diwan.dev/diwan/internal/platform/durable"
	"diwan.dev/diwan/internal/platform/imagestore/union"
)

// record is what the store keeps of an image.
type record struct {
	Manifest string    `json:"manifest"` // digest
	Config   string    `json:"config"`   // digest
	Layers   []string  `json:"layers"`   // chain IDs, lowest first
	Size     int64     `json:"size"`     // of the files in all layers
	Created  time.Time `json:"created"`  // when the store got it
}

// nameRecord says which image a name means.
type nameRecord struct {
	Name string `json:"name"`
	// Target is the digest that the registry gave for the name: the index's where there is one.
	Target string `json:"target"`
	// Manifest is the image's.
	Manifest string `json:"manifest"`
}

// Image is an image in a store. It may be removed at any time unless it is protected by
// [PruneOptions].InUse or its age.
type Image struct {
	store  *Store
	record record
	names  []nameRecord
	// asked is the name that it was found by.
	asked nameRecord
	used  time.Time
}

// ID is repository@digest, what Kubernetes calls the image ID. The digest is the one that the registry
// gave for the name that the image was found by: the index's where there is one.
func (i *Image) ID() string {
	n, err := ParseName(i.asked.Name)
	if err != nil {
		return i.record.Manifest
	}
	return n.withDigest(i.asked.Target).String()
}

// Names are all names of the image, with tags and with digests, sorted.
func (i *Image) Names() []string {
	var all []string
	for _, n := range i.names {
		all = append(all, n.Name)
	}
	return all
}

// Is reports whether id is one of the image's names, IDs or digests.
func (i *Image) Is(id string) bool {
	if id == i.record.Manifest || id == i.record.Config {
		return true
	}
	n, err := ParseName(id)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(i.names, func(r nameRecord) bool {
		own, err := ParseName(r.Name)
		return err == nil && (r.Name == n.key().String() ||
			n.Context() == own.Context() && n.Digest != "" && (n.Digest == r.Target || n.Digest == r.Manifest))
	})
}

// Digest is the digest of the image's manifest.
func (i *Image) Digest() string { return i.record.Manifest }

// ConfigDigest is the digest of the image's configuration, which Docker calls the image ID.
func (i *Image) ConfigDigest() string { return i.record.Config }

// Size is the total size of the files in all layers, in bytes.
func (i *Image) Size() int64 { return i.record.Size }

// Created is when the store got the image.
func (i *Image) Created() time.Time { return i.record.Created }

// Used is when the image was pulled, found or used last.
func (i *Image) Used() time.Time { return i.used }

// Layers are the chain IDs of the layers, lowest first.
func (i *Image) Layers() []string { return slices.Clone(i.record.Layers) }

// Dirs are the directories of the unpacked layers, top first, as overlayfs's lowerdir lists them.
// They are never written to. They may be more and longer than one page of mount options holds: use
// lowerdir+ or short links.
func (i *Image) Dirs() []string {
	var all []string
	for _, chain := range slices.Backward(i.record.Layers) {
		all = append(all, i.store.layerPath(chain, layerRoot))
	}
	return all
}

// Config is the image's configuration.
func (i *Image) Config() (*v1.ConfigFile, error) {
	b, err := i.store.blob(i.record.Config)
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration of %s: %w", i.asked.Name, err)
	}
	return v1.ParseConfigFile(bytes.NewReader(b))
}

// Manifest is the image's manifest.
func (i *Image) Manifest() (*v1.Manifest, error) {
	b, err := i.store.blob(i.record.Manifest)
	if err != nil {
		return nil, fmt.Errorf("cannot read the manifest of %s: %w", i.asked.Name, err)
	}
	return v1.ParseManifest(bytes.NewReader(b))
}

// View opens the image's files for reading. The caller closes it.
func (i *Image) View() (*union.View, error) {
	if len(i.record.Layers) == 0 {
		return nil, fmt.Errorf("the image %s has no layers", i.asked.Name)
	}
	return union.Open(i.Dirs())
}

// Use marks the image as used now.
func (i *Image) Use() error {
	now := time.Now()
	err := os.Chtimes(i.store.path("images", digestHex(i.record.Manifest)), now, now)
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("cannot mark the image %s as used: %w", i.asked.Name, err)
	}
	i.used = now
	return nil
}

// Find finds an image by its name and marks it as used. The error wraps [ErrNotFound] if the store
// does not have it.
func (s *Store) Find(n Name) (*Image, error) {
	var img *Image
	err := s.locked(context.Background(), func() (err error) {
		if img, err = s.find(n); err == nil {
			err = img.Use()
		}
		return err
	})
	if err != nil {
		kind := KindOf(err)
		if errors.Is(err, ErrNotFound) {
			kind = NotFound
		}
		return nil, &Error{Kind: kind, Name: n.String(), Err: err}
	}
	return img, nil
}

// FindDigest finds an image by the digest of its manifest or configuration, sha256:HEX.
func (s *Store) FindDigest(digest string) (*Image, error) {
	all, err := s.List()
	if err != nil {
		return nil, err
	}
	for _, img := range all {
		if img.record.Manifest == digest || img.record.Config == digest {
			return img, img.Use()
		}
	}
	return nil, &Error{Kind: NotFound, Name: abbreviate(digest), Err: ErrNotFound}
}

// find is Find under the lock.
func (s *Store) find(n Name) (*Image, error) {
	var nr nameRecord
	err := readJSON(s.namePath(n), &nr)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	img, err := s.image(nr.Manifest)
	if err != nil {
		return nil, err
	}
	img.asked = nr
	names, err := s.names()
	img.names = names[nr.Manifest]
	return img, err
}

// image reads an image's record.
func (s *Store) image(manifest string) (*Image, error) {
	path := s.path("images", digestHex(manifest))
	img := &Image{store: s}
	err := readJSON(path, &img.record)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	img.used = info.ModTime()
	img.asked = nameRecord{Name: manifest, Target: manifest, Manifest: manifest}
	return img, nil
}

// names are all names by the manifests that they mean, sorted.
func (s *Store) names() (map[string][]nameRecord, error) {
	entries, err := os.ReadDir(s.path("names"))
	if err != nil {
		return nil, err
	}
	all := make(map[string][]nameRecord)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), durable.TempPrefix) {
			continue
		}
		var nr nameRecord
		if err := readJSON(s.path("names", e.Name()), &nr); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			return nil, err
		}
		all[nr.Manifest] = append(all[nr.Manifest], nr)
	}
	for _, names := range all {
		slices.SortFunc(names, func(a, b nameRecord) int { return strings.Compare(a.Name, b.Name) })
	}
	return all, nil
}

// List lists all images, those used last first.
func (s *Store) List() ([]*Image, error) {
	var all []*Image
	err := s.locked(context.Background(), func() (err error) {
		all, err = s.list()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot list the images: %w", err)
	}
	return all, nil
}

func (s *Store) list() ([]*Image, error) {
	names, err := s.names()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(s.path("images"))
	if err != nil {
		return nil, err
	}
	var all []*Image
	for _, e := range entries {
		if !hexPattern.MatchString(e.Name()) {
			continue
		}
		img, err := s.image("sha256:" + e.Name())
		if err != nil {
			return nil, err
		}
		img.names = names[img.record.Manifest]
		if len(img.names) > 0 {
			img.asked = img.names[0]
			// A tag says more than a digest.
			if k := slices.IndexFunc(img.names, func(n nameRecord) bool { return !strings.Contains(n.Name, "@") }); k >= 0 {
				img.asked = img.names[k]
			}
		}
		all = append(all, img)
	}
	slices.SortFunc(all, func(a, b *Image) int {
		if c := b.used.Compare(a.used); c != 0 {
			return c
		}
		return strings.Compare(a.record.Manifest, b.record.Manifest)
	})
	return all, nil
}

// Tag gives the image that from means the further name to, which then means no other image.
func (s *Store) Tag(from, to Name) error {
	if to.Digest != "" {
		return &Error{Kind: InvalidName, Name: to.String(), Err: errors.New("an image can only be given a name with a tag")}
	}
	err := s.locked(context.Background(), func() error {
		img, err := s.find(from)
		if err != nil {
			return err
		}
		return s.setNames(nameRecord{Name: to.String(), Target: img.record.Manifest, Manifest: img.record.Manifest})
	})
	if errors.Is(err, ErrNotFound) {
		return &Error{Kind: NotFound, Name: from.String(), Err: err}
	}
	return err
}

// Remove removes a name. With the last name of an image that has a tag, its names by digest go too,
// and then the image; layers and blobs that nothing needs any more are swept. The caller sees to it
// that no container uses it.
func (s *Store) Remove(n Name) error {
	err := s.locked(context.Background(), func() error {
		img, err := s.find(n)
		if err != nil {
			return err
		}
		removed := s.namePath(n)
		tagged := slices.ContainsFunc(img.names, func(r nameRecord) bool {
			return !strings.Contains(r.Name, "@") && s.namePathOf(r.Name) != removed
		})
		if tagged {
			return os.Remove(removed)
		}
		return s.forget(img)
	})
	if err == nil {
		_, err = s.sweep(context.Background())
	}
	if errors.Is(err, ErrNotFound) {
		return &Error{Kind: NotFound, Name: n.String(), Err: err}
	}
	if err != nil {
		return fmt.Errorf("cannot remove the image %s: %w", n, err)
	}
	return nil
}

// forget removes an image's record and then its names, under the lock.
func (s *Store) forget(img *Image) error {
	for _, nr := range img.names {
		if err := os.Remove(s.namePathOf(nr.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return os.Remove(s.path("images", digestHex(img.record.Manifest)))
}

func (s *Store) namePath(n Name) string { return s.namePathOf(n.key().String()) }

func (s *Store) namePathOf(name string) string { return s.path("names", sha256Hex([]byte(name))) }

// setNames makes names mean images, under the lock.
func (s *Store) setNames(names ...nameRecord) error {
	for _, nr := range names {
		if err := writeJSON(s.namePathOf(nr.Name), nr); err != nil {
			return err
		}
	}
	return nil
}

// commit records an image, whose layers are all there, and its names.
func (s *Store) commit(ctx context.Context, r record, manifest, config []byte, names ...nameRecord) error {
	if err := s.putBlob(r.Config, config); err != nil {
		return err
	}
	if err := s.putBlob(r.Manifest, manifest); err != nil {
		return err
	}
	return s.locked(ctx, func() error {
		path := s.path("images", digestHex(r.Manifest))
		var old record
		if err := readJSON(path, &old); err == nil {
			r.Created = old.Created
		}
		if err := writeJSON(path, r); err != nil {
			return err
		}
		return s.setNames(names...)
	})
}

// putBlob stores a small blob. The caller's lease protects it.
func (s *Store) putBlob(digest string, b []byte) error {
	path := s.path("blobs", digestHex(digest))
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, b) {
		return nil
	}
	return durable.WriteFile(path, b)
}

// blob reads a small blob and checks it.
func (s *Store) blob(digest string) ([]byte, error) {
	b, err := os.ReadFile(s.path("blobs", digestHex(digest)))
	if err == nil && digestOf(b) != digest {
		err = fmt.Errorf("the blob %s in the store is damaged", digest)
	}
	return b, err
}

// lease protects layers and blobs from being swept before an image refers to them.
type lease struct {
	Digests []string `json:"digests"`
	file    *os.File
}

// newLease protects digests until it is released.
func (s *Store) newLease(ctx context.Context, digests ...string) (*lease, error) {
	l := &lease{Digests: digests}
	err := s.locked(ctx, func() error {
		b, err := json.Marshal(l)
		if err != nil {
			return err
		}
		f, err := os.CreateTemp(s.path("leases"), "")
		if err != nil {
			return err
		}
		l.file = f
		if err := flock(f); err != nil {
			l.release()
			return err
		}
		_, err = f.Write(b)
		if err != nil {
			l.release()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (l *lease) release() {
	os.Remove(l.file.Name())
	l.file.Close()
}
