// SPDX-License-Identifier: Apache-2.0

package imagestore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"diwan.dev/diwan/internal/platform/imagestore/unpack"
)

const (
	defaultMaxBytes   = 256 << 30
	defaultMaxEntries = 4_000_000
)

// PullOptions say how an image is pulled. The zero value pulls anonymously for this machine.
type PullOptions struct {
	// Platform is what the image must run on; zero is [DefaultPlatform].
	Platform v1.Platform
	// Candidates are credentials for the registry that the name has, tried in this order until one is
	// accepted. They are not sent to mirrors.
	Candidates []authn.Authenticator
	// Keychain has credentials by host, for mirrors, and for the registry itself if there are no
	// Candidates. nil has none.
	Keychain authn.Keychain
	// Registries say how registries are reached.
	Registries Registries
	// Progress is called now and then, and with each layer that is complete; never concurrently.
	Progress func(Progress)
	// MaxBytes and MaxEntries bound the files of the image; 0 is 256 GiB and 4 million.
	MaxBytes   int64
	MaxEntries int64
}

// Progress is how far a pull is.
type Progress struct {
	// Layers is the number of layers, Complete of those that are in the store.
	Layers   int
	Complete int
	// Bytes are the compressed bytes that are here, of Total.
	Bytes int64
	Total int64
}

// progressStep is how many bytes make a call of Progress worthwhile.
const progressStep = 1 << 20

// progress counts.
type progress struct {
	mu     sync.Mutex
	now    Progress
	told   int64
	report func(Progress)
}

func (p *progress) bytes(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.Bytes += n
	if p.now.Bytes-p.told >= progressStep {
		p.tell()
	}
}

func (p *progress) layer(layerSpec) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.Complete++
	p.tell()
}

func (p *progress) tell() {
	p.told = p.now.Bytes
	if p.report != nil {
		p.report(p.now)
	}
}

// Pull brings an image into the store and gives it the name. What the store has of it is not fetched
// again: if it has all, a pull asks the registry for manifests only. Errors are of type [*Error].
func (s *Store) Pull(ctx context.Context, n Name, o PullOptions) (*Image, error) {
	img, err := s.pull(ctx, n.key(), o)
	if err == nil {
		return img, nil
	}
	kind := KindOf(err)
	if ctx.Err() != nil {
		kind = Canceled
	}
	var e *Error
	if errors.As(err, &e) {
		return nil, err
	}
	return nil, &Error{Kind: kind, Name: n.String(), Err: err}
}

func (s *Store) pull(ctx context.Context, n Name, o PullOptions) (*Image, error) {
	if o.Platform.OS == "" {
		o.Platform = DefaultPlatform()
	}
	r, err := s.remote(ctx, n, o)
	if err != nil {
		return nil, err
	}
	defer r.close()
	top, d, err := r.resolve(ctx, n.reference(), o.Platform)
	if err != nil {
		return nil, err
	}
	if err := checkManifest(d.manifest); err != nil {
		return nil, err
	}
	names := []nameRecord{{Name: n.String(), Target: top, Manifest: d.digest}}
	if n.Digest == "" {
		names = append(names, nameRecord{Name: n.withDigest(top).String(), Target: top, Manifest: d.digest})
	}
	if d.digest != top {
		names = append(names, nameRecord{Name: n.withDigest(d.digest).String(), Target: d.digest, Manifest: d.digest})
	}
	desc := d.manifest.Config
	config, err := r.small(ctx, desc.Digest.String(), desc.Size, maxConfig)
	if err != nil {
		return nil, err
	}
	c, err := parseConfig(config, d.manifest, o.Platform)
	if err != nil {
		return nil, err
	}
	p := &progress{report: o.Progress}
	r.received = p.bytes
	img, err := s.add(ctx, addition{
		manifest: d, config: config, layers: layerSpecs(d.manifest, c), names: names,
		source: r, progress: p, maxBytes: o.MaxBytes, maxEntries: o.MaxEntries,
	})
	if err != nil {
		return nil, err
	}
	return img, nil
}

// remote is the repository of a name.
func (s *Store) remote(ctx context.Context, n Name, o PullOptions) (*remote, error) {
	r := &remote{received: func(int64) {}}
	for _, e := range o.Registries.endpoints(n) {
		var candidates []authn.Authenticator
		if !e.mirror {
			candidates = o.Candidates
		}
		if len(candidates) == 0 && o.Keychain != nil {
			auth, err := authn.Resolve(ctx, o.Keychain, resource(e.host))
			if err != nil {
				return nil, failf(Unauthorized, "cannot get the credentials for %s: %w", e.host, err)
			}
			candidates = []authn.Authenticator{auth}
		}
		r.clients = append(r.clients, s.newClient(e, candidates))
	}
	return r, nil
}

// resource is a registry for a keychain.
type resource string

// String is the key in Docker's configuration.
func (r resource) String() string { return r.RegistryStr() }

// RegistryStr is the key in Docker's configuration.
func (r resource) RegistryStr() string {
	if r == dockerHub {
		return "https://index.docker.io/v1/"
	}
	return string(r)
}

// resolve finds the image for a platform. It returns the digest of what the reference means, too.
func (r *remote) resolve(ctx context.Context, reference string, platform v1.Platform) (top string, d *document, err error) {
	for range maxIndexes {
		if d, err = r.manifest(ctx, reference); err != nil {
			return "", nil, err
		}
		if top == "" {
			top = d.digest
		}
		if d.manifest != nil {
			return top, d, nil
		}
		desc, err := choose(d.index, platform)
		if err != nil {
			return "", nil, err
		}
		if err := checkDescriptor(desc, maxManifest); err != nil {
			return "", nil, fmt.Errorf("its manifest for %s cannot be used: %w", platformString(platform), err)
		}
		reference = desc.Digest.String()
	}
	return "", nil, failf(Unsupported, "its indexes are nested more than %d deep", maxIndexes)
}

// addition is an image that comes into the store.
type addition struct {
	manifest *document
	config   []byte
	layers   []layerSpec
	// names are what it is called; it is returned as the first.
	names    []nameRecord
	source   source
	progress *progress
	maxBytes int64
	// maxEntries bounds the entries of all layers.
	maxEntries int64
}

// add brings an image into the store.
func (s *Store) add(ctx context.Context, a addition) (*Image, error) {
	if a.maxBytes <= 0 {
		a.maxBytes = defaultMaxBytes
	}
	if a.maxEntries <= 0 {
		a.maxEntries = defaultMaxEntries
	}
	r := record{Manifest: a.manifest.digest, Config: digestOf(a.config), Created: time.Now()}
	protect := []string{r.Manifest, r.Config}
	for _, l := range a.layers {
		r.Layers = append(r.Layers, l.chain)
		protect = append(protect, l.chain)
		a.progress.now.Total += l.size
	}
	a.progress.now.Layers = len(a.layers)
	held, err := s.newLease(ctx, protect...)
	if err != nil {
		return nil, fmt.Errorf("cannot protect the image from being swept: %w", err)
	}
	defer held.release()
	// What cannot be removed now is garbage for the next sweep, and no reason to fail.
	defer func() { _ = s.emptyTrash() }()
	if err := s.assemble(ctx, a.layers, a.source, unpack.NewBudget(a.maxBytes, a.maxEntries), a.progress.layer); err != nil {
		return nil, err
	}
	for _, l := range a.layers {
		info, err := s.layerInfo(l.chain)
		if err != nil {
			return nil, err
		}
		r.Size += info.Bytes
	}
	if err := s.commit(ctx, r, a.manifest.raw, a.config, a.names...); err != nil {
		return nil, fmt.Errorf("cannot record the image: %w", err)
	}
	if len(a.names) == 0 {
		return s.FindDigest(r.Manifest)
	}
	n, err := ParseName(a.names[0].Name)
	if err != nil {
		return nil, err
	}
	return s.Find(n)
}
