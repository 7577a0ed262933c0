// SPDX-License-Identifier: Apache-2.0

package imagepull

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	corev1 "k8s.io/api/core/v1"

	"diwan.dev/diwan/internal/platform/imagestore"
	"diwan.dev/diwan/internal/testing/testimage"
)

// bench is a puller with a registry, which counts what it is asked for and wants a
// password for repositories below private.
type bench struct {
	puller   *Puller
	registry *testimage.Registry

	mu   sync.Mutex
	gets map[string]int // by kind: manifests, blobs
}

const password = "open sesame"

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{gets: map[string]int{}}
	open := true // while images are pushed
	b.registry = testimage.Serve(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b.mu.Lock()
			defer b.mu.Unlock()
			_, given, _ := r.BasicAuth()
			if !open && given != password && (r.URL.Path == "/v2/" || strings.HasPrefix(r.URL.Path, "/v2/private/")) {
				w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			for _, kind := range []string{"manifests", "blobs"} {
				if strings.Contains(r.URL.Path, "/"+kind+"/") && !open {
					b.gets[kind]++
				}
			}
			next.ServeHTTP(w, r)
		})
	})
	image := testimage.Image(t, v1.Config{Cmd: []string{"true"}}, testimage.Layer(t, testimage.Text("etc/hello", "hello")))
	for _, name := range []string{"public/hello:v1", "private/hello:v1"} {
		b.registry.Push(t, name, image)
	}
	b.mu.Lock()
	open = false
	b.mu.Unlock()
	store, err := imagestore.Open(imagestore.Config{Dir: filepath.Join(t.TempDir(), "store")})
	if err != nil {
		t.Fatal(err)
	}
	b.puller = New(store, filepath.Join(t.TempDir(), "registries.yaml"), nil)
	return b
}

func (b *bench) asked(kind string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.gets[kind]
}

// pod asks for images and keeps what it is told.
type pod struct {
	uid     string
	secrets []corev1.Secret

	mu   sync.Mutex
	told []string
}

func (p *pod) request(image string, policy corev1.PullPolicy) Request {
	return Request{
		Image: image, Policy: policy, Pod: p.uid,
		Secrets: func(context.Context) ([]corev1.Secret, error) { return p.secrets, nil },
		Event: func(_, reason, message string) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.told = append(p.told, reason+": "+message)
		},
	}
}

func reasonOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return fmt.Sprint(err)
}

func TestPolicies(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	image := b.registry.Host + "/public/hello:v1"
	p := &pod{uid: "a"}
	if _, err := b.puller.Image(t.Context(), p.request(image, corev1.PullNever)); reasonOf(err) != "ErrImageNeverPull" {
		t.Errorf("with Never, an absent image gives %v", err)
	}
	found, err := b.puller.Image(t.Context(), p.request(image, corev1.PullIfNotPresent))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(found.ID(), b.registry.Host+"/public/hello@sha256:") {
		t.Errorf("the image is %s", found.ID())
	}
	if told := strings.Join(p.told, "\n"); !strings.Contains(told, "Pulling: Pulling image") || !strings.Contains(told, "Pulled: Successfully pulled image") {
		t.Errorf("the Pod was told:\n%s", told)
	}
	manifests, blobs := b.asked("manifests"), b.asked("blobs")
	for _, policy := range []corev1.PullPolicy{corev1.PullIfNotPresent, corev1.PullNever} {
		if _, err := b.puller.Image(t.Context(), p.request(image, policy)); err != nil || b.asked("manifests") != manifests {
			t.Errorf("with %s, a present image asks the registry, or gives %v", policy, err)
		}
	}
	if _, err := b.puller.Image(t.Context(), p.request(image, corev1.PullAlways)); err != nil || b.asked("manifests") == manifests {
		t.Errorf("with Always, a present image does not ask the registry, or gives %v", err)
	}
	if got := b.asked("blobs"); got > blobs+1 { // the configuration, at most
		t.Errorf("with Always, a present image fetches %d blobs", got-blobs)
	}
}

func TestBadNames(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, name := range []string{"", "Upper/Case", "a b", "../etc", "x@sha256:12"} {
		if _, err := b.puller.Image(t.Context(), (&pod{}).request(name, corev1.PullAlways)); reasonOf(err) != "InvalidImageName" {
			t.Errorf("%q gives %v", name, err)
		}
	}
}

// TestSecrets pulls a private image with no credentials, wrong ones, and the right ones
// among others.
func TestSecrets(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	image := b.registry.Host + "/private/hello:v1"
	secret := func(word string) corev1.Secret {
		return corev1.Secret{Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{
			corev1.DockerConfigJsonKey: fmt.Appendf(nil, `{"auths": {%q: {"username": "me", "password": %q}}}`, b.registry.Host, word),
		}}
	}
	for _, p := range []*pod{
		{uid: "none"},
		{uid: "wrong", secrets: []corev1.Secret{secret("guess")}},
		{uid: "elsewhere", secrets: []corev1.Secret{{Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{
			corev1.DockerConfigJsonKey: []byte(`{"auths": {"other.example": {"username": "me", "password": "` + password + `"}}}`),
		}}}},
	} {
		if _, err := b.puller.Image(t.Context(), p.request(image, corev1.PullIfNotPresent)); reasonOf(err) != "ErrImagePull" {
			t.Errorf("Pod %s: %v", p.uid, err)
		}
		if _, err := b.puller.Image(t.Context(), p.request(image, corev1.PullIfNotPresent)); reasonOf(err) != "ImagePullBackOff" || !strings.Contains(err.Error(), "Back-off pulling image") {
			t.Errorf("Pod %s, again: %v", p.uid, err)
		}
		if told := strings.Join(p.told, "\n"); !strings.Contains(told, "Failed: Failed to pull image") || !strings.Contains(told, "BackOff: ") || strings.Contains(told, password) {
			t.Errorf("Pod %s was told:\n%s", p.uid, told)
		}
	}
	broken := &pod{uid: "broken", secrets: []corev1.Secret{{Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte("{")}}}}
	if _, err := b.puller.Image(t.Context(), broken.request(image, corev1.PullIfNotPresent)); err == nil || !strings.Contains(err.Error(), "image pull secrets") {
		t.Errorf("a broken Secret gives %v", err)
	}
	right := &pod{uid: "right", secrets: []corev1.Secret{secret("guess"), secret(password)}}
	if _, err := b.puller.Image(t.Context(), right.request(image, corev1.PullIfNotPresent)); err != nil {
		t.Errorf("with the right credentials: %v", err)
	}
}

// TestOnePullForAll has many Pods want one image at once.
func TestOnePullForAll(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	image := b.registry.Host + "/public/hello:v1"
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			p := &pod{uid: fmt.Sprint(i)}
			if _, err := b.puller.Image(t.Context(), p.request(image, corev1.PullIfNotPresent)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := b.asked("blobs"); got != 2 { // the configuration and the layer
		t.Errorf("%d blobs were fetched, want 2", got)
	}
	if len(b.puller.locks) != 0 {
		t.Errorf("%d locks are left", len(b.puller.locks))
	}
}
