// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"

	"diwan.dev/diwan/internal/models/artifact"
	"diwan.dev/diwan/internal/models/store"
	"diwan.dev/diwan/internal/platform/imagestore"
)

// Pull brings a model from a registry into a store, under the name as. n has a registry. What is there
// already, of whatever version, is not fetched.
func Pull(ctx context.Context, s *store.Store, n, as store.Name, o Options) (*store.Version, error) {
	u, err := s.Use(ctx)
	if err != nil {
		return nil, err
	}
	defer u.Close()
	from := o.Registries.Repositories(imagestore.Name{Registry: n.Registry, Repository: n.Repository})
	var failed []error
	for _, repo := range from { // mirrors come first
		var v *store.Version
		if v, err = pull(ctx, u, repo, n.Reference(), as, o); err == nil {
			return v, nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("cannot pull %s: %w", n, context.Cause(ctx))
		}
		failed = append(failed, err)
	}
	if len(failed) > 1 {
		var before []string
		for i, e := range failed[:len(failed)-1] {
			before = append(before, from[i]+": "+e.Error())
		}
		err = fmt.Errorf("%w (tried before: %s)", err, strings.Join(before, "; "))
	}
	return nil, fmt.Errorf("cannot pull %s: %w", n, err)
}

func pull(ctx context.Context, u *store.Use, repo, reference string, as store.Name, o Options) (*store.Version, error) {
	r, err := open(ctx, o, repo, false)
	if err != nil {
		return nil, err
	}
	defer r.close()
	raw, _, err := r.manifest(ctx, reference)
	if err != nil {
		return nil, err
	}
	m, err := artifact.Parse(raw)
	if err != nil {
		return nil, err
	}
	blobs := m.Blobs()
	p := begin(o, blobs)
	err = each(ctx, o, blobs, func(ctx context.Context, d ocispec.Descriptor) error {
		moved := false
		err := u.Receive(ctx, d, func(w io.Writer, offset int64) error {
			moved = true
			p.bytes(offset)
			return r.download(ctx, d, w, offset, p.bytes)
		})
		p.update(func(now *Progress) {
			if err != nil {
				return
			}
			now.Complete++
			if !moved {
				now.Bytes += d.Size
				now.Skipped += d.Size
			}
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	d, err := u.Put(ctx, raw)
	if err != nil {
		return nil, err
	}
	return u.Name(ctx, as, d)
}

// each calls f for all blobs, several at a time.
func each(ctx context.Context, o Options, blobs []ocispec.Descriptor, f func(context.Context, ocispec.Descriptor) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(cmp.Or(max(o.Blobs, 0), defaultBlobs))
	for _, d := range blobs {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error { return f(ctx, d) })
	}
	return group.Wait()
}

// Push sends a version of a store to a registry, under the name to, which has a registry and a tag.
func Push(ctx context.Context, s *store.Store, v *store.Version, to store.Name, o Options) error {
	if err := push(ctx, s, v, to, o); err != nil {
		return fmt.Errorf("cannot push to %s: %w", to, err)
	}
	return nil
}

func push(ctx context.Context, s *store.Store, v *store.Version, to store.Name, o Options) error {
	if to.Tag == "" {
		return errors.New("a model is pushed to a tag, not to a digest")
	}
	u, err := s.Use(ctx)
	if err != nil {
		return err
	}
	defer u.Close()
	others, err := elsewhere(s, to)
	if err != nil {
		return err
	}
	var repos []string
	for _, repo := range others {
		repos = append(repos, repo)
	}
	r, err := open(ctx, o, to.Registry+"/"+to.Repository, true, unique(repos)...)
	if err != nil {
		return err
	}
	defer r.close()
	blobs := v.Manifest.Blobs()
	p := begin(o, blobs)
	err = each(ctx, o, blobs, func(ctx context.Context, d ocispec.Descriptor) error {
		return r.provide(ctx, d, others[d.Digest], func(offset int64) (io.ReadCloser, error) {
			f, err := u.Open(d)
			if err != nil {
				return nil, err
			}
			return fileBody(f, offset)
		}, remembered{s, r.Name(), d.Digest}, p)
	})
	if err != nil {
		return err
	}
	return r.putManifest(ctx, to.Tag, cmp.Or(v.Manifest.MediaType, ocispec.MediaTypeImageManifest), v.Manifest.Raw)
}

func unique(all []string) []string {
	var few []string
	seen := map[string]bool{}
	for _, s := range all {
		if !seen[s] && len(few) < 8 { // each is a scope of the token
			seen[s] = true
			few = append(few, s)
		}
	}
	return few
}

// elsewhere are repositories of the same registry that probably have blobs, since versions came from there.
func elsewhere(s *store.Store, to store.Name) (map[digest.Digest]string, error) {
	all, err := s.List()
	if err != nil {
		return nil, err
	}
	found := map[digest.Digest]string{}
	for _, v := range all {
		if v.Name.Registry != to.Registry || v.Name.Repository == to.Repository {
			continue
		}
		for _, d := range v.Manifest.Blobs() {
			found[d.Digest] = v.Name.Repository
		}
	}
	return found, nil
}

// remembered is where the upload of a blob goes on, in the store.
type remembered struct {
	store *store.Store
	repo  string
	blob  digest.Digest
}

func (m remembered) get() string               { return m.store.Upload(m.repo, m.blob) }
func (m remembered) set(location string) error { return m.store.SetUpload(m.repo, m.blob, location) }

// provide sees to it that the repository has a blob.
func (r *repository) provide(ctx context.Context, d ocispec.Descriptor, from string, open opener, m memory, p *progress) error {
	found, err := r.has(ctx, d)
	if err == nil && found {
		p.update(func(now *Progress) { now.Complete++; now.Bytes += d.Size; now.Skipped += d.Size })
		return nil
	}
	if err == nil {
		err = r.upload(ctx, d, from, open, m, p.bytes)
	}
	if err != nil {
		return fmt.Errorf("cannot send the blob %s: %w", d.Digest, err)
	}
	p.update(func(now *Progress) { now.Complete++ })
	return nil
}

// Copy copies a model from one registry to another, with cosign's signatures of it, by way of this machine's
// memory only. Both names have registries. It returns the manifest's digest.
func Copy(ctx context.Context, from, to store.Name, o Options) (digest.Digest, error) {
	d, err := copyModel(ctx, from, to, o)
	if err != nil {
		return "", fmt.Errorf("cannot copy %s to %s: %w", from, to, err)
	}
	return d, nil
}

func copyModel(ctx context.Context, from, to store.Name, o Options) (digest.Digest, error) {
	if to.Tag == "" {
		return "", errors.New("a model is copied to a tag, not to a digest")
	}
	source, err := open(ctx, o, from.Registry+"/"+from.Repository, false)
	if err != nil {
		return "", err
	}
	defer source.close()
	var mount []string
	if from.Registry == to.Registry {
		mount = []string{from.Repository}
	}
	target, err := open(ctx, o, to.Registry+"/"+to.Repository, true, mount...)
	if err != nil {
		return "", err
	}
	defer target.close()
	c := copying{source, target, append(mount, "")[0], o}
	raw, mediaType, err := source.manifest(ctx, from.Reference())
	if err != nil {
		return "", err
	}
	m, err := artifact.Parse(raw)
	if err != nil {
		return "", err
	}
	if err := c.manifest(ctx, m.Blobs(), to.Tag, mediaType, raw); err != nil {
		return "", err
	}
	return m.Digest, c.signatures(ctx, m.Digest)
}

type copying struct {
	source, target *repository
	from           string
	options        Options
}

func (c *copying) manifest(ctx context.Context, blobs []ocispec.Descriptor, reference, mediaType string, raw []byte) error {
	p := begin(c.options, blobs)
	err := each(ctx, c.options, blobs, func(ctx context.Context, d ocispec.Descriptor) error {
		return c.target.provide(ctx, d, c.from, func(offset int64) (io.ReadCloser, error) {
			body, err := c.source.open(ctx, d, offset)
			if err != nil {
				return nil, err
			}
			return &counted{ReadCloser: body}, nil
		}, forgetful{}, p)
	})
	if err != nil {
		return err
	}
	return c.target.putManifest(ctx, reference, mediaType, raw)
}

// signatures copies what cosign has stored beside a manifest.
func (c *copying) signatures(ctx context.Context, of digest.Digest) error {
	tag := "sha256-" + of.Encoded() + ".sig"
	raw, mediaType, err := c.source.manifest(ctx, tag)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	var m ocispec.Manifest
	if err == nil {
		err = json.Unmarshal(raw, &m)
	}
	if err != nil {
		return fmt.Errorf("cannot copy its signatures: %w", err)
	}
	blobs := append(m.Layers, m.Config)
	for _, d := range blobs {
		if err := artifact.CheckDigest(d.Digest); err != nil || d.Size < 0 || d.Size > artifact.MaxConfig {
			return fmt.Errorf("cannot copy its signatures: the blob %.80q is none of cosign's", d.Digest)
		}
	}
	c.options.Progress = nil
	return c.manifest(ctx, blobs, tag, mediaType, raw)
}

// Inspect fetches the manifest and the configuration of a model at a registry, and nothing else.
func Inspect(ctx context.Context, n store.Name, o Options) (*artifact.Manifest, []byte, error) {
	fail := func(err error) (*artifact.Manifest, []byte, error) {
		return nil, nil, fmt.Errorf("cannot inspect %s: %w", n, err)
	}
	r, err := open(ctx, o, n.Registry+"/"+n.Repository, false)
	if err != nil {
		return fail(err)
	}
	defer r.close()
	raw, _, err := r.manifest(ctx, n.Reference())
	if err != nil {
		return fail(err)
	}
	m, err := artifact.Parse(raw)
	if err != nil {
		return fail(err)
	}
	var config strings.Builder
	if err := r.download(ctx, m.Config, &config, 0, func(int64) {}); err != nil {
		return fail(err)
	}
	if digest.FromString(config.String()) != m.Config.Digest {
		return fail(store.ErrDigest)
	}
	return m, []byte(config.String()), nil
}
