// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"
)

// MaxManifest bounds manifests, in bytes. The specification asks for at least this.
const MaxManifest = 4 << 20

// The media types of manifests.
const (
	ociManifest    = "application/vnd.oci.image.manifest.v1+json"
	ociIndex       = "application/vnd.oci.image.index.v1+json"
	dockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
	dockerList     = "application/vnd.docker.distribution.manifest.list.v2+json"
)

func isIndex(mediaType string) bool { return mediaType == ociIndex || mediaType == dockerList }

// Descriptor describes content (OCI image specification, "Descriptors").
type Descriptor struct {
	MediaType    string            `json:"mediaType"`
	Digest       Digest            `json:"digest"`
	Size         int64             `json:"size"` // in bytes
	ArtifactType string            `json:"artifactType,omitempty"`
	Annotations  map[string]string `json:"annotations,omitempty"`
}

// foreign reports whether content is described that is not for registries to
// have: layers that their owner lets nobody pass on.
func (d Descriptor) foreign() bool {
	return strings.HasPrefix(d.MediaType, "application/vnd.oci.image.layer.nondistributable.") ||
		d.MediaType == "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip"
}

// manifest is what the registry understands of an image manifest or an index.
type manifest struct {
	MediaType    string            `json:"mediaType"`
	ArtifactType string            `json:"artifactType"`
	Config       *Descriptor       `json:"config"`
	Layers       []Descriptor      `json:"layers"`
	Manifests    []Descriptor      `json:"manifests"`
	Subject      *Descriptor       `json:"subject"`
	Annotations  map[string]string `json:"annotations"`
}

// parseManifest reads a manifest of a media type that a client has sent.
func parseManifest(mediaType string, data []byte) (manifest, error) {
	if err := unambiguous(data); err != nil {
		return manifest{}, fail(http.StatusBadRequest, ManifestInvalid, "%v", err)
	}
	return decodeManifest(mediaType, data)
}

// decodeManifest reads a manifest of a media type and checks what the registry
// relies on.
func decodeManifest(mediaType string, data []byte) (manifest, error) {
	invalid := func(format string, args ...any) (manifest, error) {
		return manifest{}, fail(http.StatusBadRequest, ManifestInvalid, format, args...)
	}
	var m manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return invalid("the manifest is not what its media type says: %v", err)
	}
	// A document that is an index to one client and an image to another is an
	// attack (CVE-2021-41190).
	if m.MediaType != "" && m.MediaType != mediaType {
		return invalid("the manifest says that it is %.80q, its Content-Type %.80q", m.MediaType, mediaType)
	}
	switch mediaType {
	case ociManifest, dockerManifest:
		if m.Config == nil {
			return invalid("an image manifest needs a config")
		}
		if m.Manifests != nil {
			return invalid("an image manifest has no manifests")
		}
	case ociIndex, dockerList:
		if m.Config != nil || m.Layers != nil {
			return invalid("an index has neither config nor layers")
		}
	default:
		return invalid("manifests of type %.80q are not supported", mediaType)
	}
	described := slices.Concat(m.blobs(), m.Manifests)
	if m.Subject != nil {
		described = append(described, *m.Subject)
	}
	for _, d := range described {
		if _, err := ParseDigest(string(d.Digest)); err != nil {
			return invalid("%v", err)
		}
		if d.Size < 0 {
			return invalid("%s has a negative size", d.Digest)
		}
	}
	return m, nil
}

// unambiguous checks that a JSON object has each key once. Keys that differ in
// case alone count as the same, since some parsers take them so.
func unambiguous(data []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	if open, err := decoder.Token(); err != nil || open != json.Delim('{') {
		return errors.New("the manifest is not a JSON object")
	}
	seen := map[string]bool{}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return fmt.Errorf("the manifest is not JSON: %w", err)
		}
		name, _ := key.(string)
		folded := strings.ToLower(strings.ToUpper(name))
		if seen[folded] {
			return fmt.Errorf("the manifest has the key %.40q twice", name)
		}
		seen[folded] = true
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return fmt.Errorf("the manifest is not JSON: %w", err)
		}
	}
	return nil
}

// blobs returns the blobs that a manifest needs.
func (m manifest) blobs() []Descriptor {
	var all []Descriptor
	if m.Config != nil {
		all = append(all, *m.Config)
	}
	for _, layer := range m.Layers {
		if !layer.foreign() {
			all = append(all, layer)
		}
	}
	return all
}

// artifactType returns the type that referrers are listed with.
func (m manifest) artifactType() string {
	if m.ArtifactType == "" && m.Config != nil {
		return m.Config.MediaType
	}
	return m.ArtifactType
}

func unknownManifest(repo, ref string) error {
	return fail(http.StatusNotFound, ManifestUnknown, "the repository %s has no manifest %s", repo, ref)
}

// resolve finds a manifest by tag or digest. The caller has mu.
func (r *Registry) resolve(repo, ref string) (Descriptor, error) {
	if err := checkName(repo); err != nil {
		return Descriptor{}, err
	}
	d, err := r.refer(repo, ref)
	if err != nil {
		return Descriptor{}, err
	}
	found, err := r.statManifest(repo, d)
	return found, orUnknown(err, unknownManifest(repo, ref))
}

// refer returns the digest that a tag or digest stands for. The caller has mu.
func (r *Registry) refer(repo, ref string) (Digest, error) {
	if strings.Contains(ref, ":") {
		return ParseDigest(ref)
	}
	if err := checkTag(ref); err != nil {
		return "", err
	}
	text, err := r.files.root.ReadFile(tagLink(repo, ref))
	if err != nil {
		return "", orUnknown(err, unknownManifest(repo, ref))
	}
	return ParseDigest(string(text))
}

// statManifest describes a manifest of a repository, or fails with
// fs.ErrNotExist. The caller has mu.
func (r *Registry) statManifest(repo string, d Digest) (Descriptor, error) {
	mediaType, err := r.files.root.ReadFile(manifestLink(repo, d))
	if err != nil {
		return Descriptor{}, err
	}
	size, err := r.files.size(contentFile(d))
	return Descriptor{MediaType: string(mediaType), Digest: d, Size: size}, err
}

// readManifest reads a manifest of a repository, or fails with fs.ErrNotExist.
func (r *Registry) readManifest(repo string, d Digest) (manifest, Descriptor, error) {
	found, err := r.statManifest(repo, d)
	if err != nil {
		return manifest{}, Descriptor{}, err
	}
	data, err := r.files.root.ReadFile(contentFile(d))
	if err != nil {
		return manifest{}, Descriptor{}, err
	}
	m, err := decodeManifest(found.MediaType, data)
	if err != nil {
		return manifest{}, Descriptor{}, fmt.Errorf("the manifest %s of %s is damaged: %s", d, repo, err)
	}
	return m, found, nil
}

// manifests returns the digests of a repository's manifests.
func (r *Registry) manifests(repo string) ([]Digest, error) {
	return r.files.digests(path.Join(repositoriesDir, repo, "_manifests"))
}

// Resolve describes the manifest that a tag or digest names. Asked for a
// digest, it keeps the manifest and what that needs from being collected for a
// grace period, for an index that is about to be pushed.
func (r *Registry) Resolve(repo, ref string) (Descriptor, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	found, err := r.resolve(repo, ref)
	if err == nil && ref == string(found.Digest) {
		err = orUnknown(r.useManifest(repo, found.Digest, map[Digest]bool{}), unknownManifest(repo, ref))
	}
	return found, err
}

// Manifest returns the manifest that a tag or digest names, byte for byte as it
// was pushed.
func (r *Registry) Manifest(repo, ref string) (Descriptor, []byte, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	found, err := r.resolve(repo, ref)
	if err != nil {
		return Descriptor{}, nil, err
	}
	data, err := r.files.root.ReadFile(contentFile(found.Digest))
	return found, data, err
}

// useManifest holds a manifest of a repository, all that it needs and what
// refers to it, or fails with fs.ErrNotExist. The caller has mu.
func (r *Registry) useManifest(repo string, d Digest, seen map[Digest]bool) error {
	if seen[d] {
		return nil
	}
	seen[d] = true
	m, _, err := r.readManifest(repo, d)
	if err != nil {
		return err
	}
	if err := r.files.touch(manifestLink(repo, d)); err != nil {
		return err
	}
	r.hold(d)
	return r.useParts(repo, d, m, seen)
}

// useParts holds what a manifest needs and what refers to it. The caller has mu.
func (r *Registry) useParts(repo string, of Digest, m manifest, seen map[Digest]bool) error {
	check := func(d Descriptor, size int64, err error) error {
		if err == nil && size != d.Size {
			return fail(http.StatusBadRequest, ManifestInvalid, "the manifest says that %s has %d bytes, it has %d", d.Digest, d.Size, size)
		}
		return orUnknown(err, fail(http.StatusNotFound, ManifestBlobUnknown, "the repository %s does not have %s, which the manifest needs", repo, d.Digest))
	}
	for _, d := range m.blobs() {
		size, err := r.statBlob(repo, d.Digest)
		if err == nil {
			err = r.useBlob(repo, d.Digest)
		}
		if err := check(d, size, err); err != nil {
			return err
		}
	}
	for _, d := range m.Manifests {
		found, err := r.statManifest(repo, d.Digest)
		if err == nil {
			err = r.useManifest(repo, d.Digest, seen)
		}
		if err := check(d, found.Size, err); err != nil {
			return err
		}
	}
	referrers, err := r.referrers(repo, of)
	if err != nil {
		return err
	}
	for _, d := range referrers {
		if err := r.useManifest(repo, d, seen); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// A Push is a manifest to be pushed.
type Push struct {
	// Reference is a tag, or the manifest's digest.
	Reference string
	// Tags are further tags for the manifest.
	Tags []string
	// MediaType is the manifest's type. If it is empty, the manifest names its type.
	MediaType string
	Data      []byte
}

// PushManifest stores a manifest after everything that it needs: blobs and, for
// an index, manifests. The subject it refers to may be missing. It returns the
// manifest's descriptor and its subject's digest, if any.
func (r *Registry) PushManifest(repo string, push Push) (pushed Descriptor, subject Digest, err error) {
	if err := checkName(repo); err != nil {
		return Descriptor{}, "", err
	}
	pushed, tags, m, err := push.check()
	if err != nil {
		return Descriptor{}, "", err
	}
	if err := r.reserve(pushed.Size); err != nil {
		return Descriptor{}, "", err
	}
	staged, err := r.files.stage(push.Data)
	if err != nil {
		r.used.Add(-pushed.Size)
		return Descriptor{}, "", err
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	err = r.useParts(repo, pushed.Digest, m, map[Digest]bool{})
	if err == nil {
		err = r.publish(staged, pushed.Digest)
	}
	if err != nil {
		r.used.Add(-pushed.Size)
		return Descriptor{}, "", errors.Join(err, r.files.remove(staged))
	}
	if err := r.linkManifest(repo, pushed, m, tags); err != nil {
		return Descriptor{}, "", fmt.Errorf("cannot store the manifest %s in %s: %w", pushed.Digest, repo, err)
	}
	if m.Subject != nil {
		subject = m.Subject.Digest
	}
	return pushed, subject, nil
}

// check checks what can be known of a push without looking at the registry. It
// returns the manifest's descriptor, all of its tags, and the manifest.
func (push Push) check() (pushed Descriptor, tags []string, m manifest, err error) {
	pushed = Descriptor{Digest: FromBytes(push.Data), Size: int64(len(push.Data))}
	if pushed.Size > MaxManifest {
		return pushed, nil, m, fail(http.StatusRequestEntityTooLarge, SizeInvalid, "manifests have at most %d bytes", MaxManifest)
	}
	tags = push.Tags
	if strings.Contains(push.Reference, ":") {
		want, err := ParseDigest(push.Reference)
		if err != nil {
			return pushed, nil, m, err
		}
		if pushed.Digest = digestOf(want.algorithm(), push.Data); pushed.Digest != want {
			return pushed, nil, m, fail(http.StatusBadRequest, DigestInvalid, "the manifest's digest is %s, not %s", pushed.Digest, want)
		}
	} else {
		tags = append([]string{push.Reference}, tags...)
	}
	for _, tag := range tags {
		if err := checkTag(tag); err != nil {
			return pushed, nil, m, err
		}
	}
	if pushed.MediaType, err = manifestType(push); err != nil {
		return pushed, nil, m, err
	}
	m, err = parseManifest(pushed.MediaType, push.Data)
	return pushed, tags, m, err
}

// manifestType returns the media type of a manifest, without parameters.
func manifestType(push Push) (string, error) {
	if push.MediaType == "" {
		var named struct{ MediaType string }
		if err := json.Unmarshal(push.Data, &named); err != nil {
			return "", fail(http.StatusBadRequest, ManifestInvalid, "the manifest is not JSON: %v", err)
		}
		return named.MediaType, nil
	}
	mediaType, _, err := mime.ParseMediaType(push.MediaType)
	if err != nil {
		return "", fail(http.StatusBadRequest, ManifestInvalid, "the manifest's Content-Type %.80q is not a media type", push.MediaType)
	}
	return mediaType, nil
}

// linkManifest makes published content a manifest of a repository. Each step
// is on stable storage before the next. The caller has mu.
func (r *Registry) linkManifest(repo string, pushed Descriptor, m manifest, tags []string) error {
	d := pushed.Digest
	parts := map[string]bool{path.Dir(contentFile(d)): true}
	for _, blob := range m.blobs() {
		parts[path.Dir(contentFile(blob.Digest))] = true
		parts[path.Dir(blobLink(repo, blob.Digest))] = true
	}
	if m.Subject != nil {
		// Whoever lists referrers ignores those that have no manifest yet.
		if err := r.files.create(referrerLink(repo, m.Subject.Digest, d)); err != nil {
			return err
		}
		parts[referrersDir(repo, m.Subject.Digest)] = true
	}
	for dir := range parts {
		if err := r.files.sync(dir); err != nil {
			return err
		}
	}
	if err := r.files.write(manifestLink(repo, d), []byte(pushed.MediaType)); err != nil {
		return err
	}
	for _, tag := range tags {
		// A manifest ages from when it lost a tag.
		if old, err := r.refer(repo, tag); err == nil && old != d {
			if err := r.files.touch(manifestLink(repo, old)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		if err := r.files.write(tagLink(repo, tag), []byte(d)); err != nil {
			return err
		}
	}
	return nil
}

// Tags returns the tags of a repository in ASCII order.
func (r *Registry) Tags(repo string) ([]string, error) {
	if err := checkName(repo); err != nil {
		return nil, err
	}
	if _, err := r.files.root.Stat(path.Join(repositoriesDir, repo, "_manifests")); err != nil {
		return nil, orUnknown(err, fail(http.StatusNotFound, NameUnknown, "there is no repository %s", repo))
	}
	return r.tags(repo)
}

func (r *Registry) tags(repo string) ([]string, error) {
	names, err := r.files.names(tagsDir(repo))
	tags := make([]string, 0, len(names))
	for _, name := range names {
		if tag, ok := tagOf(name); ok {
			tags = append(tags, tag)
		}
	}
	slices.Sort(tags)
	return tags, err
}

// Referrers returns the manifests of a repository whose subject has a digest,
// with their artifact types and annotations, sorted by digest.
func (r *Registry) Referrers(repo, digest string) ([]Descriptor, error) {
	subject, err := checked(repo, digest)
	if err != nil {
		return nil, err
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	found, err := r.referrers(repo, subject)
	if err != nil {
		return nil, err
	}
	all := make([]Descriptor, 0, len(found))
	for _, d := range found {
		m, described, err := r.readManifest(repo, d)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		described.ArtifactType, described.Annotations = m.artifactType(), m.Annotations
		all = append(all, described)
	}
	return all, nil
}

// referrers returns the digests of the manifests that refer to a subject, some
// of which may have no manifest.
func (r *Registry) referrers(repo string, subject Digest) ([]Digest, error) {
	names, err := r.files.names(referrersDir(repo, subject))
	var all []Digest
	for _, name := range names {
		if d, err := ParseDigest(strings.Replace(name, "-", ":", 1)); err == nil {
			all = append(all, d)
		}
	}
	return all, err
}
