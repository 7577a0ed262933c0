// SPDX-License-Identifier: Apache-2.0

package imagestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"diwan.dev/diwan/internal/platform/durable"
)

// PruneOptions say what is removed. The algorithm is kubelet's
// (k8s.io/kubernetes pkg/kubelet/images/image_gc_manager.go), with a byte budget.
type PruneOptions struct {
	// InUse says that an image has a container; such images stay. nil is none.
	InUse func(*Image) bool
	// HighBytes is the size of all layers above which images are removed, those first that were used
	// least recently, until it is at most LowBytes. 0 is no bound.
	HighBytes int64
	LowBytes  int64
	// MinAge protects images that were used more recently than that, a pull included.
	MinAge time.Duration
	// MaxAge removes images that were not used for longer; 0 removes none for its age.
	MaxAge time.Duration
	// All removes every image that is not protected, and partial blobs that nobody is fetching.
	All bool
}

// Pruned is what Prune did.
type Pruned struct {
	// Images are the removed images' names, or digests where they had none.
	Images []string
	// Bytes is the size of the removed layers' files, Left of those that remain.
	Bytes int64
	Left  int64
}

// Prune removes images that are not in use, and layers and blobs that no image needs, with what killed
// processes left behind.
func (s *Store) Prune(ctx context.Context, o PruneOptions) (Pruned, error) {
	var p Pruned
	err := s.prune(ctx, o, &p)
	if err == nil {
		age := partialAge
		if o.All {
			age = 0
		}
		err = s.sweepGarbage(age)
	}
	if err != nil {
		return p, fmt.Errorf("cannot prune the images: %w", err)
	}
	return p, nil
}

func (s *Store) prune(ctx context.Context, o PruneOptions, p *Pruned) error {
	start := time.Now()
	candidates, err := s.List() // those used last first
	if err != nil {
		return err
	}
	left, err := s.usage()
	if err != nil {
		return err
	}
	over := o.HighBytes > 0 && left > o.HighBytes
	for i := len(candidates) - 1; i >= 0; i-- {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		img := candidates[i]
		idle := start.Sub(img.used)
		expired := o.MaxAge > 0 && idle > o.MaxAge
		if !o.All && !expired && !(over && left > o.LowBytes) {
			continue
		}
		if idle < o.MinAge || o.InUse != nil && o.InUse(img) {
			continue
		}
		removed := false
		err := s.locked(ctx, func() error {
			now, err := s.image(img.record.Manifest)
			if errors.Is(err, ErrNotFound) || err == nil && !now.used.Equal(img.used) {
				return nil // it was removed, or used, meanwhile
			}
			if err != nil {
				return err
			}
			names, err := s.names()
			if err != nil {
				return err
			}
			now.names = names[img.record.Manifest]
			removed = true
			return s.forget(now)
		})
		if err != nil {
			return err
		}
		if !removed {
			continue
		}
		p.Images = append(p.Images, img.asked.Name)
		freed, err := s.sweep(ctx)
		if err != nil {
			return err
		}
		p.Bytes += freed
		left -= freed
	}
	freed, err := s.sweep(ctx)
	p.Bytes += freed
	p.Left = left - freed
	return err
}

// Usage is the size of the files in all layers, in bytes.
func (s *Store) Usage() (int64, error) {
	n, err := s.usage()
	if err != nil {
		return 0, fmt.Errorf("cannot measure the images: %w", err)
	}
	return n, nil
}

func (s *Store) usage() (int64, error) {
	entries, err := os.ReadDir(s.path("layers"))
	if err != nil {
		return 0, err
	}
	var total int64
	for _, e := range entries {
		info, err := s.layerInfo("sha256:" + e.Name())
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, err
		}
		total += info.size()
	}
	return total, nil
}

// size is the disk space of a layer.
func (l *layerInfo) size() int64 {
	if l.Kept {
		return l.Bytes + l.BlobSize
	}
	return l.Bytes
}

// sweep removes layers and blobs that neither an image nor a running pull needs. It returns the size of
// the layers.
func (s *Store) sweep(ctx context.Context) (int64, error) {
	var freed int64
	err := s.locked(ctx, func() error {
		needed, err := s.needed()
		if err != nil {
			return err
		}
		layers, err := os.ReadDir(s.path("layers"))
		if err != nil {
			return err
		}
		for _, e := range layers {
			chain := "sha256:" + e.Name()
			if needed[chain] {
				continue
			}
			if info, err := s.layerInfo(chain); err == nil {
				freed += info.size()
			}
			if err := s.discard(s.path("layers", e.Name())); err != nil {
				return err
			}
		}
		for _, dir := range []string{"blobs", "images", "names"} {
			if err := s.sweepFiles(dir, needed); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return freed, err
	}
	return freed, s.emptyTrash()
}

// sweepFiles removes blobs that nothing needs, and files of killed writers. Writers of images and
// names hold the lock that the caller holds.
func (s *Store) sweepFiles(dir string, needed map[string]bool) error {
	entries, err := os.ReadDir(s.path(dir))
	if err != nil {
		return err
	}
	for _, e := range entries {
		garbage := false
		switch {
		case strings.HasPrefix(e.Name(), durable.TempPrefix):
			info, err := e.Info()
			garbage = dir != "blobs" || err == nil && time.Since(info.ModTime()) > time.Hour
		case dir == "blobs":
			garbage = !needed["sha256:"+e.Name()]
		}
		if garbage {
			if err := os.Remove(s.path(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// needed are the digests that images and running pulls refer to, under the lock.
func (s *Store) needed() (map[string]bool, error) {
	needed := make(map[string]bool)
	images, err := s.list()
	if err != nil {
		return nil, err
	}
	for _, img := range images {
		needed[img.record.Manifest], needed[img.record.Config] = true, true
		for _, chain := range img.record.Layers {
			needed[chain] = true
		}
	}
	leases, err := os.ReadDir(s.path("leases"))
	if err != nil {
		return nil, err
	}
	for _, e := range leases {
		path := s.path("leases", e.Name())
		held, err := durable.TryLock(path)
		if err == nil { // its holder is gone
			os.Remove(path)
			held.Close()
			continue
		}
		var l lease
		switch err := readJSON(path, &l); {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		}
		for _, d := range l.Digests {
			needed[d] = true
		}
	}
	return needed, nil
}
