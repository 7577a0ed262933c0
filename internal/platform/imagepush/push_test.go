// SPDX-License-Identifier: Apache-2.0

package imagepush

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"diwan.dev/diwan/internal/platform/imagestore"
	"diwan.dev/diwan/internal/platform/registry"
	"diwan.dev/diwan/internal/testing/testimage"
)

const token = "a token of the tests, long enough"

type keychain struct{}

// Resolve implements [authn.Keychain].
func (keychain) Resolve(authn.Resource) (authn.Authenticator, error) {
	return &authn.Basic{Username: "anyone", Password: token}, nil
}

// serve serves a registry, and returns its address.
func serve(t *testing.T) string {
	t.Helper()
	r, err := registry.Open(registry.Config{Dir: t.TempDir(), Authorize: registry.TokenPolicy(token, false)})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(r.Handler())
	t.Cleanup(func() {
		server.Close()
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return strings.TrimPrefix(server.URL, "http://")
}

// pulled is a store with an image of two layers.
func pulled(t *testing.T, keep bool) (*imagestore.Store, *imagestore.Image, imagestore.Name) {
	t.Helper()
	from := testimage.Serve(t, nil)
	from.Push(t, "acme/two:1", testimage.Image(t, v1.Config{Cmd: []string{"a"}},
		testimage.Layer(t, testimage.Text("a", strings.Repeat("a", 3<<20))), testimage.Layer(t, testimage.Text("b", "b"))))
	source := parse(t, from.Host+"/acme/two:1")
	store, err := imagestore.Open(imagestore.Config{Dir: t.TempDir(), KeepBlobs: keep})
	if err != nil {
		t.Fatal(err)
	}
	image, err := store.Pull(t.Context(), source, imagestore.PullOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return store, image, source
}

func parse(t *testing.T, text string) imagestore.Name {
	t.Helper()
	n, err := imagestore.ParseName(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestPush wants a registry to have what the store has.
func TestPush(t *testing.T) {
	t.Parallel()
	for _, keep := range []bool{false, true} {
		store, image, source := pulled(t, keep)
		to := parse(t, serve(t)+"/mine/two:latest")
		var told atomic.Int64
		digest, err := Push(t.Context(), store, source, to, Options{Dir: t.TempDir(), Keychain: keychain{}, Progress: func(sent, total int64) {
			if sent > total {
				t.Errorf("%d bytes of %d were sent", sent, total)
			}
			told.Store(sent)
		}})
		if err != nil {
			t.Fatal(err)
		}
		if keep && digest != image.Digest() {
			t.Errorf("the image has the digest %s, was %s", digest, image.Digest())
		}
		if !keep && told.Load() < 3<<20 {
			t.Errorf("%d bytes are said to be sent", told.Load())
		}
		other, err := imagestore.Open(imagestore.Config{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		have, err := other.Pull(t.Context(), to, imagestore.PullOptions{Keychain: keychain{}})
		if err != nil {
			t.Fatal(err)
		}
		if have.Digest() != digest {
			t.Errorf("the registry has %s, want %s", have.Digest(), digest)
		}
		if got, want := config(t, have), config(t, image); got != want {
			t.Errorf("the registry has the configuration %s, want %s", got, want)
		}
	}
}

// TestPushCompresses wants layers on their way to other machines to be compressed.
func TestPushCompresses(t *testing.T) {
	t.Parallel()
	store, image, source := pulled(t, false)
	address := serve(t)
	file := save(t, store, source)
	saved, err := openArchive(file, false)
	if err != nil {
		t.Fatal(err)
	}
	reference, err := name.NewTag(address + "/mine/two:latest")
	if err != nil {
		t.Fatal(err)
	}
	if err := write(t.Context(), reference, saved, http.DefaultTransport, Options{Keychain: keychain{}}); err != nil {
		t.Fatal(err)
	}
	have, err := remote.Image(reference, remote.WithAuthFromKeychain(keychain{}))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(have); err != nil {
		t.Error(err)
	}
	manifest, err := have.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range manifest.Layers {
		if l.MediaType != types.DockerLayer || l.Size > 1<<20 {
			t.Errorf("a layer is %d bytes of %s", l.Size, l.MediaType)
		}
	}
	if want := config(t, image); manifest.Config.Digest != want {
		t.Errorf("the registry has the configuration %s, want %s", manifest.Config.Digest, want)
	}
}

// TestPushRefused wants errors to name what helps.
func TestPushRefused(t *testing.T) {
	t.Parallel()
	store, _, source := pulled(t, false)
	address := serve(t)
	for destination, want := range map[string]string{
		address + "/mine/two:1":                                 "docker login " + address,
		address + "/mine/two@sha256:" + strings.Repeat("a", 64): "needs a tag",
	} {
		_, err := Push(t.Context(), store, source, parse(t, destination), Options{Dir: t.TempDir(), Keychain: authn.NewMultiKeychain()})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a push to %s ends with %v, want %q", destination, err, want)
		}
	}
	if _, err := Push(t.Context(), store, parse(t, "other"), parse(t, address+"/other"), Options{Dir: t.TempDir(), Keychain: keychain{}}); imagestore.KindOf(err) != imagestore.NotFound {
		t.Errorf("a push of an image that is not there ends with %v", err)
	}
}

// TestReach wants credentials to be sent by TLS, unless the user says otherwise.
func TestReach(t *testing.T) {
	t.Parallel()
	registries := imagestore.Registries{Registries: []imagestore.Registry{
		{Host: "10.0.0.7:5000", PlainHTTP: true}, {Host: "localhost:5001", SkipVerify: true},
	}}
	for registry, plain := range map[string]bool{
		"localhost:5000": true, "127.0.0.1:5000": true, "[::1]:5000": true, "10.0.0.7:5000": true,
		"10.0.0.8:5000": false, "ghcr.io": false, "localhost:5001": false, "localhost.example:80": false,
	} {
		h, err := Reach(registries, registry)
		if err != nil {
			t.Fatal(err)
		}
		if _, guarded := h.Transport.(onlyTLS); guarded == plain {
			t.Errorf("%s is asked without TLS: %v, want %v", registry, !guarded, plain)
		}
	}
	req := httptest.NewRequest(http.MethodGet, "http://10.0.0.8:5000/v2/", nil)
	if _, err := (onlyTLS{}).RoundTrip(req); err == nil || !strings.Contains(err.Error(), "plainHTTP") {
		t.Errorf("a request without TLS ends with %v", err)
	}
}
