// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"
)

// Options say what a collection keeps.
type Options struct {
	// UntaggedAge is how long after its push, or after it lost a tag, a
	// manifest is kept that no tag needs. Zero keeps all manifests. A manifest
	// is needed if it has a tag, if a needed index lists it, or if its subject
	// is needed.
	UntaggedAge time.Duration
	// Grace is how long a blob is kept that no manifest needs: the time in
	// which a client that pushed it, or asked whether it exists, must push its
	// manifest. Zero means an hour.
	Grace time.Duration
	// UploadAge is how long an upload is kept to which no data comes. Zero
	// means a day.
	UploadAge time.Duration
}

// Collected is what a collection has removed.
type Collected struct {
	Manifests int   // from repositories
	Blobs     int   // from repositories
	Uploads   int   // that were given up
	Bytes     int64 // of content and uploads
}

// collection is one run of Collect.
type collection struct {
	*Registry
	Options
	start  time.Time
	linked map[Digest]bool // content that repositories have
	done   Collected
}

// Collect removes what no tag needs, while clients push and pull. A repository
// with a damaged manifest is left alone and named in the error, which does not
// stop the collection of the others. One collection runs at a time.
func (r *Registry) Collect(ctx context.Context, options Options) (Collected, error) {
	if options.Grace == 0 {
		options.Grace = time.Hour
	}
	if options.UploadAge == 0 {
		options.UploadAge = 24 * time.Hour
	}
	r.collecting.Lock()
	defer r.collecting.Unlock()

	// From here on pushes note what they rely on. Those that were under way
	// before have ended: their manifests are there to be marked.
	r.mu.Lock()
	c := &collection{Registry: r, Options: options, start: time.Now(), linked: map[Digest]bool{}}
	r.heldMu.Lock()
	r.held = map[Digest]struct{}{}
	r.heldMu.Unlock()
	r.mu.Unlock()
	defer func() {
		r.heldMu.Lock()
		defer r.heldMu.Unlock()
		r.held = nil
	}()

	var damaged error
	err := r.walkRepositories(func(repo string) error {
		if err := c.repository(ctx, repo); err != nil {
			if ctx.Err() != nil {
				return err
			}
			damaged = errors.Join(damaged, fmt.Errorf("cannot collect the repository %s: %w", repo, err))
		}
		return nil
	})
	// Content may go only if it is known what all repositories have.
	if err == nil {
		err = r.walkRepositories(c.noteLinks)
	}
	if err == nil {
		err = c.content(ctx)
	}
	if err == nil {
		err = c.abandoned(ctx)
	}
	if err != nil {
		err = fmt.Errorf("cannot collect garbage: %w", err)
	}
	return c.done, errors.Join(err, damaged)
}

// repository marks and sweeps one repository.
func (c *collection) repository(ctx context.Context, repo string) error {
	manifests, blobs, err := c.mark(ctx, repo)
	if err != nil {
		return err
	}
	present, err := c.manifests(repo)
	if err != nil {
		return err
	}
	for _, d := range present {
		if manifests[d] || ctx.Err() != nil {
			continue
		}
		removed, err := c.sweep(d, manifestLink(repo, d), c.UntaggedAge, func() error { return c.unlinkManifest(repo, d) })
		if err != nil {
			return err
		}
		c.done.Manifests += removed
	}
	dir := path.Join(repositoriesDir, repo, "_blobs")
	linked, err := c.files.digests(dir)
	if err != nil {
		return err
	}
	for _, d := range linked {
		if blobs[d] || ctx.Err() != nil {
			continue
		}
		removed, err := c.sweep(d, blobLink(repo, d), c.Grace, func() error { return c.files.remove(blobLink(repo, d)) })
		if err != nil {
			return err
		}
		c.done.Blobs += removed
	}
	c.prune(repo)
	return ctx.Err()
}

// sweep removes an item unless a push relies on it or its file is younger than
// age. It returns how many items it removed.
func (c *collection) sweep(d Digest, file string, age time.Duration, remove func() error) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isHeld(d) {
		return 0, nil
	}
	info, err := c.files.root.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil || c.young(info, age) {
		return 0, err
	}
	if err := remove(); err != nil {
		return 0, err
	}
	return 1, nil
}

func (c *collection) young(info fs.FileInfo, age time.Duration) bool {
	return info.ModTime().After(c.start.Add(-age))
}

// mark returns what a repository's tags, and its young manifests, need. It
// takes no lock: what changes meanwhile, pushes hold.
func (c *collection) mark(ctx context.Context, repo string) (manifests, blobs map[Digest]bool, err error) {
	manifests, blobs = map[Digest]bool{}, map[Digest]bool{}
	pending, err := c.roots(repo)
	if err != nil {
		return nil, nil, err
	}
	for len(pending) > 0 {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		d := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		if manifests[d] {
			continue
		}
		m, _, err := c.readManifest(repo, d)
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted meanwhile, or a referrer without its manifest
		}
		if err != nil {
			return nil, nil, err
		}
		manifests[d] = true
		for _, blob := range m.blobs() {
			blobs[blob.Digest] = true
		}
		for _, child := range m.Manifests {
			pending = append(pending, child.Digest)
		}
		referrers, err := c.referrers(repo, d)
		if err != nil {
			return nil, nil, err
		}
		pending = append(pending, referrers...)
	}
	return manifests, blobs, nil
}

// roots returns the manifests that are kept for their own sake.
func (c *collection) roots(repo string) ([]Digest, error) {
	tags, err := c.tags(repo)
	if err != nil {
		return nil, err
	}
	var roots []Digest
	for _, tag := range tags {
		d, err := c.refer(repo, tag)
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		roots = append(roots, d)
	}
	all, err := c.manifests(repo)
	if err != nil {
		return nil, err
	}
	for _, d := range all {
		info, err := c.files.root.Stat(manifestLink(repo, d))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if c.UntaggedAge == 0 || c.young(info, c.UntaggedAge) {
			roots = append(roots, d)
		}
	}
	return roots, nil
}

// prune removes what is empty of a repository's directories, and those above.
func (c *collection) prune(repo string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	dir := path.Join(repositoriesDir, repo)
	referrers := path.Join(dir, "_referrers")
	subjects, _ := c.files.names(referrers)
	for i := range subjects {
		subjects[i] = path.Join(referrers, subjects[i])
	}
	empty := append(subjects, referrers, path.Join(dir, "_tags"))
	for _, kind := range []string{"_blobs", "_manifests"} {
		for algorithm := range algorithms {
			empty = append(empty, path.Join(dir, kind, algorithm))
		}
		empty = append(empty, path.Join(dir, kind))
	}
	for ; dir != repositoriesDir; dir = path.Dir(dir) {
		empty = append(empty, dir)
	}
	for _, dir := range empty {
		_ = c.files.root.Remove(dir) // fails, as it should, if anything is in it
	}
}

// noteLinks notes the content that a repository has.
func (c *collection) noteLinks(repo string) error {
	for _, kind := range []string{"_blobs", "_manifests"} {
		digests, err := c.files.digests(path.Join(repositoriesDir, repo, kind))
		if err != nil {
			return err
		}
		for _, d := range digests {
			c.linked[d] = true
		}
	}
	return nil
}

// content removes content that no repository has.
func (c *collection) content(ctx context.Context) error {
	all, err := c.files.digests(blobsDir)
	if err != nil {
		return err
	}
	for _, d := range all {
		if err := ctx.Err(); err != nil {
			return err
		}
		if c.linked[d] {
			continue
		}
		_, err := c.sweep(d, contentFile(d), c.Grace, func() error {
			size, err := c.files.size(contentFile(d))
			if err != nil {
				return err
			}
			if err := c.files.remove(contentFile(d)); err != nil {
				return err
			}
			c.used.Add(-size)
			c.done.Bytes += size
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// abandoned removes uploads to which no data has come for long.
func (c *collection) abandoned(ctx context.Context) error {
	ids, err := c.files.names(uploadsDir)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return err
		}
		dir := path.Join(uploadsDir, id)
		info, err := c.files.root.Stat(path.Join(dir, "data"))
		if errors.Is(err, fs.ErrNotExist) {
			// Beginning or ending now, or left by a killed process.
			if info, err = c.files.root.Stat(dir); errors.Is(err, fs.ErrNotExist) {
				continue
			}
		}
		if err != nil {
			return err
		}
		if c.young(info, c.UploadAge) {
			continue
		}
		if err := c.abandon(id); err != nil {
			return err
		}
	}
	return nil
}

// abandon ends an upload unless a request is using it.
func (c *collection) abandon(id string) error {
	u, err := c.upload(id)
	if errors.Is(err, fs.ErrNotExist) {
		// Not one that can be resumed.
		u = &upload{id: id, busy: make(chan struct{}, 1)}
		u.size, err = c.files.size(u.dataFile())
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err != nil {
		return err
	}
	select {
	case u.busy <- struct{}{}:
		defer u.release()
	default:
		return nil
	}
	if u.ended {
		return nil
	}
	c.done.Uploads++
	c.done.Bytes += u.size
	return c.end(u)
}
