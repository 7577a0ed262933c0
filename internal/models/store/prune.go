// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"diwan.dev/diwan/internal/platform/durable"
)

// PruneOptions say what is removed besides blobs that no version needs.
type PruneOptions struct {
	// KeepPartial is how long partial blobs and uploads wait to be resumed; 0 removes all.
	KeepPartial time.Duration
}

// Pruned is what Prune removed.
type Pruned struct {
	Blobs int   `json:"blobs"`
	Bytes int64 `json:"bytes"`
}

// Prune removes blobs that no version needs, and what killed processes left behind. It fails with [ErrInUse]
// while somebody relies on blobs.
func (s *Store) Prune(ctx context.Context, o PruneOptions) (Pruned, error) {
	var p Pruned
	if err := ctx.Err(); err != nil {
		return p, context.Cause(ctx)
	}
	l, err := durable.TryLock(s.path("use"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return p, nil // nothing was ever saved
	case errors.Is(err, durable.ErrLocked):
		return p, fmt.Errorf("cannot prune the models: %w; prune again when it is done", ErrInUse)
	case err != nil:
		return p, fmt.Errorf("cannot prune the models: %w", err)
	}
	defer l.Close()
	if err := s.prune(o, &p); err != nil {
		return p, fmt.Errorf("cannot prune the models: %w", err)
	}
	return p, nil
}

func (s *Store) prune(o PruneOptions, p *Pruned) error {
	records, err := s.records()
	if err != nil {
		return err
	}
	needed := map[string]bool{}
	for _, r := range records {
		v, err := s.version(r)
		if err != nil { // keep everything rather than guess
			return fmt.Errorf("cannot read %s: %w; remove it with `diwan model remove %s`", r.Name, err, r.Name)
		}
		needed[v.Manifest.Digest.Encoded()] = true
		for _, d := range v.Manifest.Blobs() {
			needed[d.Digest.Encoded()] = true
		}
	}
	blobs, err := os.ReadDir(s.path("blobs"))
	if err != nil {
		return err
	}
	for _, e := range blobs {
		if needed[e.Name()] {
			continue
		}
		if info, err := e.Info(); err == nil {
			p.Bytes += info.Size()
		}
		if err := os.RemoveAll(s.path("blobs", e.Name())); err != nil {
			return err
		}
		p.Blobs++
	}
	for _, dir := range []string{"work", "uploads", "names", "."} {
		if err := s.sweep(dir, o.KeepPartial, p); err != nil {
			return err
		}
	}
	return nil
}

// sweep removes what killed processes left in a directory. The caller excludes all writers of blobs.
func (s *Store) sweep(dir string, keep time.Duration, p *Pruned) error {
	entries, err := os.ReadDir(s.path(dir))
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := s.path(dir, e.Name())
		temporary := strings.HasPrefix(e.Name(), durable.TempPrefix)
		if !temporary && dir != "work" && dir != "uploads" {
			continue
		}
		used := path
		if dir == "work" {
			used = filepath.Join(path, "data")
		}
		info, err := os.Stat(used)
		if err == nil && !temporary && time.Since(info.ModTime()) < keep && !s.complete(e.Name()) {
			continue
		}
		if err == nil {
			p.Bytes += info.Size()
		}
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return nil
}

// complete reports whether a blob on its way is there already.
func (s *Store) complete(encoded string) bool {
	_, err := os.Stat(s.blobPath(digest.Digest("sha256:" + encoded)))
	return err == nil
}
