// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"errors"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"
)

// inUse is the answer to deleting what something else needs: that deletion is
// disabled, in the specification's terms.
func inUse(format string, args ...any) error {
	return fail(http.StatusMethodNotAllowed, Unsupported, format, args...)
}

// Delete removes a tag, or, given a digest, a manifest and all of its tags.
// A manifest that an index of the repository lists stays. Content goes with the
// next collection.
func (r *Registry) Delete(repo, ref string) error {
	if err := checkName(repo); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !strings.Contains(ref, ":") {
		return r.untag(repo, ref)
	}
	found, err := r.resolve(repo, ref)
	if err != nil {
		return err
	}
	return r.deleteManifest(repo, found.Digest)
}

// untag removes a tag. The caller has mu exclusively.
func (r *Registry) untag(repo, tag string) error {
	d, err := r.refer(repo, tag)
	if err != nil {
		return err
	}
	// A manifest ages from when it lost a tag.
	if err := r.files.touch(manifestLink(repo, d)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := r.files.remove(tagLink(repo, tag)); err != nil {
		return err
	}
	return r.files.sync(tagsDir(repo))
}

// deleteManifest removes a manifest. The caller has mu exclusively.
func (r *Registry) deleteManifest(repo string, d Digest) error {
	others, err := r.manifests(repo)
	if err != nil {
		return err
	}
	for _, other := range others {
		if described, err := r.statManifest(repo, other); err == nil && !isIndex(described.MediaType) {
			continue
		}
		m, _, err := r.readManifest(repo, other)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if slices.ContainsFunc(m.Manifests, func(child Descriptor) bool { return child.Digest == d }) {
			return inUse("the index %s lists the manifest %s: delete the index first", other, d)
		}
	}
	tags, err := r.tags(repo)
	if err != nil {
		return err
	}
	for _, tag := range tags {
		if named, err := r.refer(repo, tag); err != nil || named != d {
			continue
		}
		if err := r.untag(repo, tag); err != nil {
			return err
		}
	}
	return r.unlinkManifest(repo, d)
}

// unlinkManifest removes an untagged manifest from its repository. The caller
// has mu exclusively.
func (r *Registry) unlinkManifest(repo string, d Digest) error {
	m, _, readErr := r.readManifest(repo, d)
	if err := r.files.remove(manifestLink(repo, d)); err != nil {
		return err
	}
	if err := r.files.sync(path.Dir(manifestLink(repo, d))); err != nil {
		return err
	}
	if readErr != nil || m.Subject == nil {
		return nil // a link that stays behind a damaged manifest refers to nothing
	}
	return r.files.remove(referrerLink(repo, m.Subject.Digest, d))
}

// DeleteBlob removes a blob from a repository. A blob that a manifest of the
// repository needs stays.
func (r *Registry) DeleteBlob(repo, digest string) error {
	d, err := checked(repo, digest)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.statBlob(repo, d); err != nil {
		return orUnknown(err, unknownBlob(repo, d))
	}
	manifests, err := r.manifests(repo)
	if err != nil {
		return err
	}
	for _, of := range manifests {
		m, _, err := r.readManifest(repo, of)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if slices.ContainsFunc(m.blobs(), func(part Descriptor) bool { return part.Digest == d }) {
			return inUse("the manifest %s needs the blob %s: delete the manifest first", of, d)
		}
	}
	return r.files.remove(blobLink(repo, d))
}
