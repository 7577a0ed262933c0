// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	served "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"diwan.dev/diwan/internal/tuning/collector/injection"
)

// loopback allows the registries of tests.
var loopback = Allowed{networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}

// serve runs a registry that wants a password, and counts what it is asked.
func serve(t *testing.T) (host string, asked *int) {
	t.Helper()
	asked = new(int)
	handler := served.New(served.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked++
		if user, password, _ := r.BasicAuth(); user != "user" || password != "secret" {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://"), asked
}

func push(t *testing.T, image string, config v1.Config) {
	t.Helper()
	made, err := mutate.Config(empty.Image, config)
	if err != nil {
		t.Fatal(err)
	}
	reference, err := name.ParseReference(image)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(reference, made, remote.WithAuth(&authn.Basic{Username: "user", Password: "secret"})); err != nil {
		t.Fatal(err)
	}
}

func TestEntrypoint(t *testing.T) {
	t.Parallel()
	host, asked := serve(t)
	push(t, host+"/team/train:1", v1.Config{Entrypoint: []string{"python"}, Cmd: []string{"train.py"}})
	push(t, host+"/team/empty:1", v1.Config{})
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pull"}, Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths": {"http://` + host + `/v2/": {"username": "user", "password": "secret"}}}`)},
	}
	account := &corev1.ServiceAccount{
		ObjectMeta:       metav1.ObjectMeta{Namespace: "ns", Name: "default"},
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: "missing"}, {Name: "pull"}},
	}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "job", UID: "uid"}}
	for _, image := range []string{"train:1", "empty:1", "none:1"} {
		job.Spec.Template.Spec.Containers = append(job.Spec.Template.Spec.Containers, corev1.Container{Image: host + "/team/" + image})
	}
	r := New(fake.NewClientBuilder().WithObjects(secret, account, job).Build(), loopback)
	podOf := func(namespace string, uid types.UID) *corev1.Pod {
		owner := metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: "job", UID: uid, Controller: ptr.To(true)}
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, OwnerReferences: []metav1.OwnerReference{owner}}}
	}
	ask := func(namespace, image string) (*injection.Entrypoint, error) {
		return r.Entrypoint(t.Context(), podOf(namespace, "uid"), &corev1.Container{Image: image})
	}
	got, err := ask("ns", host+"/team/train:1")
	if diff := cmp.Diff(&injection.Entrypoint{Command: []string{"python"}, Args: []string{"train.py"}}, got); err != nil || diff != "" {
		t.Fatalf("%v: -want +got\n%s", err, diff)
	}
	before := *asked
	if _, err := ask("ns", host+"/team/train:1"); err != nil || *asked != before {
		t.Errorf("the same again asks the registry %d times, %v", *asked-before, err)
	}
	for name, c := range map[string]struct{ reason, namespace, image, want string }{
		"Secret":  {"another namespace has no secret", "other", host + "/team/train:1", "401"},
		"Unknown": {"no such image", "ns", host + "/team/none:1", "404"},
		"Empty":   {"it runs nothing", "ns", host + "/team/empty:1", "has no entrypoint or command"},
		"Name":    {"no name of an image", "ns", "A B", "could not parse"},
	} {
		if _, err := ask(c.namespace, c.image); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %s: %v, want %q", name, c.reason, err, c.want)
		}
	}
	for reason, pod := range map[string]*corev1.Pod{
		"controlled by nothing":                   {ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}},
		"controlled by what has another UID":      podOf("ns", "guessed"),
		"of a controller that says another image": podOf("ns", "uid"),
	} {
		image := host + "/team/train:1"
		if strings.Contains(reason, "another image") {
			image = host + "/team/other:1"
			push(t, image, v1.Config{Entrypoint: []string{"python"}})
		}
		if _, err := r.Entrypoint(t.Context(), pod, &corev1.Container{Image: image}); err == nil || !strings.Contains(err.Error(), "401") {
			t.Errorf("a Pod %s uses the namespace's pull secrets: %v", reason, err)
		}
	}
	own := func(secret string) error {
		pod := podOf("ns", "uid")
		pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: secret}}
		_, err := r.Entrypoint(t.Context(), pod, &corev1.Container{Image: host + "/team/train:1"})
		return err
	}
	if err := own("missing"); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("a Pod that names a secret that is not there is answered as others were: %v", err)
	}
	before = *asked
	if err := own("missing"); err == nil || *asked != before {
		t.Errorf("the same again asks the registry %d times, %v", *asked-before, err)
	}
	if err := own("pull"); err != nil {
		t.Errorf("a Pod that names the secret is answered as others were: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Entrypoint(ended, &corev1.Pod{}, &corev1.Container{Image: host + "/team/train:1"}); err == nil {
		t.Error("it does not heed its context")
	}
}

// TestPatience has a registry that is too slow for one who can do without it, and
// not for another.
func TestPatience(t *testing.T) {
	t.Parallel()
	handler := served.New(served.Logger(log.New(io.Discard, "", 0)))
	var slow atomic.Bool
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if slow.Load() {
			asked.Add(1)
			<-r.Context().Done()
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	image := strings.TrimPrefix(server.URL, "http://") + "/train:1"
	push(t, image, v1.Config{Entrypoint: []string{"python"}})
	r := New(nil, loopback)
	ask := func(ctx context.Context) error {
		_, err := r.Entrypoint(ctx, &corev1.Pod{}, &corev1.Container{Image: image})
		return err
	}
	soon, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	slow.Store(true)
	if err := ask(soon); err == nil || asked.Load() != 1 {
		t.Fatalf("the registry is not too slow: %v, asked %d times", err, asked.Load())
	}
	if err := ask(soon); err == nil || asked.Load() != 1 {
		t.Errorf("who has no more patience asks again: %v, asked %d times", err, asked.Load())
	}
	slow.Store(false)
	if err := ask(t.Context()); err != nil {
		t.Errorf("who waits longer is told that it was too slow for another: %v", err)
	}
}
