// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"diwan.dev/diwan/internal/models/artifact"
	"diwan.dev/diwan/internal/platform/imagepush"
	"diwan.dev/diwan/internal/platform/imagestore"
)

const (
	// tries is how often a request is made that brings nothing new.
	tries = 5
	// idle is how long a registry may send or take nothing.
	idle = 2 * time.Minute
	// defaultBlobs is how many blobs are moved at a time.
	defaultBlobs = 4
)

// ErrNotFound is wrapped by errors about what a registry does not have.
var ErrNotFound = errors.New("the registry does not have it")

// Options say how registries are reached and what is told meanwhile.
type Options struct {
	// Keychain has credentials by host. nil has none.
	Keychain authn.Keychain
	// Registries say how registries are reached.
	Registries imagestore.Registries
	// Blobs is how many blobs are moved at a time; 0 is 4.
	Blobs int
	// Progress is called now and then; it may be called concurrently. nil is none.
	Progress func(Progress)

	// pause is the wait before the n-th repetition of a request; for tests.
	pause func(n int) time.Duration
}

// Progress is how far a transfer is.
type Progress struct {
	// Blobs is their number, Complete that of those which are there.
	Blobs, Complete int
	// Bytes are there, of Total.
	Bytes, Total int64
	// Skipped are bytes of blobs that did not need to be moved.
	Skipped int64
}

func backoff(n int) time.Duration {
	d := min(500*time.Millisecond<<n, 15*time.Second)
	return d/2 + rand.N(d/2)
}

// progress counts.
type progress struct {
	mu     sync.Mutex
	now    Progress
	report func(Progress)
}

func (p *progress) update(change func(*Progress)) {
	p.mu.Lock()
	change(&p.now)
	now := p.now
	p.mu.Unlock()
	if p.report != nil {
		p.report(now)
	}
}

func (p *progress) bytes(n int64) { p.update(func(now *Progress) { now.Bytes += n }) }

func begin(o Options, blobs []ocispec.Descriptor) *progress {
	p := &progress{report: o.Progress}
	p.now.Blobs = len(blobs)
	for _, d := range blobs {
		p.now.Total += d.Size
	}
	return p
}

// repository is one at a registry.
type repository struct {
	name.Repository
	client *http.Client
	pause  func(int) time.Duration
	inner  http.RoundTripper
}

// open reaches a repository HOST/PATH. from are paths of others at the host that blobs are mounted from.
func open(ctx context.Context, o Options, repo string, push bool, from ...string) (*repository, error) {
	host, path, _ := strings.Cut(repo, "/")
	reached, err := imagepush.Reach(o.Registries, host)
	if err != nil {
		return nil, err
	}
	named, err := name.NewRepository(host+"/"+path, reached.Options...)
	if err != nil {
		return nil, err
	}
	auth := authn.Anonymous
	if o.Keychain != nil {
		if auth, err = authn.Resolve(ctx, o.Keychain, named.Registry); err != nil {
			return nil, fmt.Errorf("cannot get the credentials for %s: %w", host, err)
		}
	}
	scopes := []string{named.Scope(transport.PullScope)}
	if push {
		scopes = []string{named.Scope(transport.PushScope)}
		for _, other := range from {
			scopes = append(scopes, named.Registry.Repo(other).Scope(transport.PullScope))
		}
	}
	if t, ok := reached.Transport.(*http.Transport); ok {
		t.ResponseHeaderTimeout, t.MaxIdleConnsPerHost = idle, 2*defaultBlobs
		t.DisableCompression = true
	}
	through, err := transport.NewWithContext(ctx, named.Registry, auth, transport.NewUserAgent(reached.Transport, "diwan"), scopes)
	if err != nil {
		return nil, explain(err, host)
	}
	r := &repository{Repository: named, client: &http.Client{Transport: through, CheckRedirect: checkRedirect}, pause: o.pause, inner: reached.Transport}
	if r.pause == nil {
		r.pause = backoff
	}
	return r, nil
}

func (r *repository) close() {
	if t, ok := r.inner.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// checkRedirect follows redirects that do not leave TLS. go-containerregistry gives credentials to the
// registry's own host only.
func checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return errors.New("it was redirected more than 10 times")
	}
	if via[len(via)-1].URL.Scheme == "https" && req.URL.Scheme != "https" {
		return fmt.Errorf("%s redirects to an address without TLS, which is not followed", via[len(via)-1].URL.Host)
	}
	return nil
}

func (r *repository) url(path string) string {
	return r.Scheme() + "://" + r.RegistryStr() + "/v2/" + r.RepositoryStr() + "/" + path
}

// statusError is an answer that was not hoped for.
type statusError struct {
	host   string
	status int
	text   string
}

// Error says what the registry says, and what helps.
func (e *statusError) Error() string {
	s := fmt.Sprintf("%s answers %d %s", e.host, e.status, http.StatusText(e.status))
	if e.text != "" {
		s += ": " + e.text
	}
	if e.status == http.StatusUnauthorized || e.status == http.StatusForbidden {
		s += fmt.Sprintf(": log in with `diwan model login %s` as a user who may do this", e.host)
	}
	return s
}

// Is makes a 404 an ErrNotFound.
func (e *statusError) Is(target error) bool {
	return target == ErrNotFound && e.status == http.StatusNotFound
}

// explain says what helps when a registry refuses at once.
func explain(err error, host string) error {
	var te *transport.Error
	if errors.As(err, &te) {
		e := &statusError{host: host, status: te.StatusCode}
		if len(te.Errors) > 0 {
			e.text = shorten(te.Errors[0].Message)
		}
		return e
	}
	if strings.Contains(err.Error(), http.ErrSchemeMismatch.Error()) {
		return fmt.Errorf("%s speaks HTTP without TLS, which is used only if registries.yaml says plainHTTP for it", host)
	}
	return fmt.Errorf("cannot reach %s: %w", host, err)
}

func shorten(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "?")), " ")
	return s[:min(len(s), 300)]
}

// do makes one request. An answer with none of the statuses is an error.
func (r *repository) do(req *http.Request, statuses ...int) (*http.Response, error) {
	resp, err := r.client.Do(req)
	if err != nil {
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err // without the URL, which may hold a secret
		}
		var te *transport.Error
		if errors.As(err, &te) {
			return nil, explain(err, r.RegistryStr())
		}
		return nil, fmt.Errorf("cannot reach %s: %w", r.RegistryStr(), err)
	}
	for _, s := range statuses {
		if resp.StatusCode == s {
			return resp, nil
		}
	}
	defer resp.Body.Close()
	e := &statusError{host: r.RegistryStr(), status: resp.StatusCode}
	b, _ := io.ReadAll(io.LimitReader(resp.Body, 4096))
	var answer struct {
		Errors []struct{ Code, Message string }
	}
	if json.Unmarshal(b, &answer) == nil && len(answer.Errors) > 0 {
		e.text = shorten(answer.Errors[0].Code + " " + answer.Errors[0].Message)
	}
	return nil, e
}

// temporary reports whether the same request may succeed soon.
func temporary(err error) bool {
	var se *statusError
	if errors.As(err, &se) {
		return se.status == http.StatusTooManyRequests || se.status == http.StatusRequestTimeout || se.status >= 500
	}
	return true
}

// permanent is an error that no repetition helps.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// retry calls f until it succeeds, fails for good, or has failed tries times without progress.
func (r *repository) retry(ctx context.Context, f func() (progress bool, err error)) error {
	for n := 0; ; n++ {
		moved, err := f()
		var fatal permanent
		if err == nil || errors.As(err, &fatal) || !temporary(err) {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if moved {
			n = 0
		}
		if n+1 >= tries {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(r.pause(n)):
		}
	}
}

var manifestTypes = strings.Join([]string{ocispec.MediaTypeImageManifest, ocispec.MediaTypeImageIndex, "application/vnd.docker.distribution.manifest.v2+json"}, ", ")

// manifest fetches a manifest by its tag or digest.
func (r *repository) manifest(ctx context.Context, reference string) (raw []byte, mediaType string, err error) {
	err = r.retry(ctx, func() (bool, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url("manifests/"+reference), nil)
		if err != nil {
			return false, permanent{err}
		}
		req.Header.Set("Accept", manifestTypes)
		resp, err := r.do(req, http.StatusOK)
		if err != nil {
			return false, err
		}
		defer resp.Body.Close()
		raw, err = io.ReadAll(io.LimitReader(resp.Body, artifact.MaxManifest+1))
		mediaType = resp.Header.Get("Content-Type")
		return false, err
	})
	if err != nil {
		return nil, "", err
	}
	if len(raw) > artifact.MaxManifest {
		return nil, "", fmt.Errorf("its manifest has more than %d bytes", artifact.MaxManifest)
	}
	if got := digest.FromBytes(raw); strings.Contains(reference, ":") && string(got) != reference {
		return nil, "", fmt.Errorf("its manifest has the digest %s instead of %s", got, reference)
	}
	return raw, mediaType, nil
}

// putManifest pushes a manifest under a tag or digest.
func (r *repository) putManifest(ctx context.Context, reference, mediaType string, raw []byte) error {
	return r.retry(ctx, func() (bool, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPut, r.url("manifests/"+reference), strings.NewReader(string(raw)))
		if err != nil {
			return false, permanent{err}
		}
		req.Header.Set("Content-Type", mediaType)
		resp, err := r.do(req, http.StatusCreated, http.StatusOK, http.StatusAccepted)
		if err != nil {
			return false, err
		}
		return false, resp.Body.Close()
	})
}
