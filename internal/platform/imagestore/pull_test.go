// SPDX-License-Identifier: Apache-2.0

//go:build linux

package imagestore

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/zstd"

	"diwan.dev/diwan/internal/platform/imagestore/unpack"
)

func removeStore(t testing.TB, dir string) {
	t.Helper()
	if err := unpack.RemoveAll(dir); err != nil {
		t.Error(err)
	}
}

func TestPull(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	n := h.push(t, "acme/app:v1", imageOf(t,
		layerOf(t, tarOf(t, dir("etc", 0o755), file("etc/a", "one"), file("etc/b", "gone"))),
		layerOf(t, tarOf(t, file("etc/a", "two"), file("etc/.wh.b", ""), dir("tmp", 0o1777)))))
	s := newStore(t)
	var last Progress
	img, err := s.Pull(t.Context(), n, PullOptions{Progress: func(p Progress) { last = p }})
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, img, "/etc/a"); got != "two" {
		t.Errorf("etc/a is %q", got)
	}
	v, err := img.View()
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	names, err := v.ReadDir("/etc")
	if err != nil || !cmp.Equal(names, []string{"a"}) {
		t.Errorf("etc contains %q, %v", names, err)
	}
	if st, err := v.Stat("tmp"); err != nil || st.Mode&0o7777 != 0o1777 {
		t.Errorf("the mode of tmp is %o, %v", st.Mode, err)
	}
	if last.Complete != 2 || last.Layers != 2 || last.Bytes != last.Total || last.Total == 0 {
		t.Errorf("the last progress is %+v", last)
	}
	c, err := img.Config()
	if err != nil || !cmp.Equal(c.Config.Entrypoint, []string{"/bin/program"}) {
		t.Errorf("config: %v, %v", c, err)
	}
	if want := n.Context() + "@" + img.Digest(); img.ID() != want {
		t.Errorf("the ID is %s, want %s", img.ID(), want)
	}
	byDigest, err := s.Find(parse(t, img.ID()))
	if err != nil {
		t.Fatal(err)
	}
	if byDigest.ID() != img.ID() || !byDigest.Is(n.String()) || !byDigest.Is(img.ID()) || byDigest.Is("acme/other") {
		t.Errorf("found by digest: %s, %v", byDigest.ID(), byDigest.Names())
	}

	// Again: only the manifest and the configuration.
	before := h.count("GET")
	if again := pull(t, s, n); again.ID() != img.ID() {
		t.Errorf("pulled again, the ID is %s", again.ID())
	}
	if got := h.count("GET") - before; got > 2 {
		t.Errorf("a second pull made %d requests", got)
	}
	if got := workDirs(t, s); len(got) != 0 {
		t.Errorf("work is left: %q", got)
	}
}

func workDirs(t testing.TB, s *Store) []string {
	t.Helper()
	var all []string
	for _, d := range []string{"work", "leases", "trash"} {
		entries, err := os.ReadDir(s.path(d))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			all = append(all, d+"/"+e.Name())
		}
	}
	return all
}

// random is text that does not compress.
func random(n int) string {
	b := make([]byte, n)
	rand.Read(b)
	return string(b)
}

func TestPullSharesLayers(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	base := layerOf(t, tarOf(t, file("base", "base")))
	one := h.push(t, "one", imageOf(t, base, layerOf(t, tarOf(t, file("one", "1")))))
	two := h.push(t, "two", imageOf(t, base, layerOf(t, tarOf(t, file("two", "2")))))
	s := newStore(t)
	var wg sync.WaitGroup
	for range 4 {
		for _, n := range []Name{one, two} {
			wg.Go(func() {
				img, err := s.Pull(context.Background(), n, PullOptions{})
				if err != nil {
					t.Error(err)
				} else if got := read(t, img, "base"); got != "base" {
					t.Errorf("base is %q", got)
				}
			})
		}
	}
	wg.Wait()
	digest, err := base.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if got := h.count("GET /v2/one/blobs/"+digest.String()) + h.count("GET /v2/two/blobs/"+digest.String()); got != 1 {
		t.Errorf("the common layer was fetched %d times", got)
	}
	layers, err := os.ReadDir(s.path("layers"))
	if err != nil || len(layers) != 3 {
		t.Errorf("there are %d layers, %v", len(layers), err)
	}
}

func TestPullResumes(t *testing.T) {
	t.Parallel()
	content := random(3 << 20)
	for name, broken := range map[string]func(w http.ResponseWriter, body []byte, r *http.Request) bool{
		"closed mid-body": func(w http.ResponseWriter, body []byte, r *http.Request) bool {
			w.Header().Set("Content-Length", fmt.Sprint(len(body)))
			w.Write(body[:len(body)/2])
			panic(http.ErrAbortHandler)
		},
		"silent": func(w http.ResponseWriter, body []byte, r *http.Request) bool {
			w.Header().Set("Content-Length", fmt.Sprint(len(body)))
			w.Write(body[:len(body)/2])
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHub(t)
			layer := layerOf(t, tarOf(t, file("big", content)))
			n := h.push(t, "big", imageOf(t, layer))
			digest, blob := blobOf(t, layer)
			var drops atomic.Int64
			h.intercept(func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasSuffix(r.URL.Path, digest) {
					return false
				}
				if drops.Add(1) == 1 {
					return broken(w, blob, r)
				}
				http.ServeContent(w, r, "", time.Time{}, strings.NewReader(string(blob)))
				return true
			})
			s := openStore(t, Config{Dir: t.TempDir(), Idle: 2 * time.Second})
			img := pull(t, s, n)
			if got := read(t, img, "big"); got != "error: read big: it has more than 1048576 bytes" {
				t.Errorf("a bound was not kept: %.40q", got)
			}
			sum := h.bytes("/v2/big/blobs/" + digest)
			if drops.Load() < 2 || sum < int64(len(blob)) || sum > int64(len(blob))+int64(len(blob))/10 {
				t.Errorf("%d requests sent %d bytes of a blob of %d", drops.Load(), sum, len(blob))
			}
		})
	}
}

func blobOf(t testing.TB, l v1.Layer) (digest string, blob []byte) {
	t.Helper()
	d, err := l.Digest()
	if err != nil {
		t.Fatal(err)
	}
	r, err := l.Compressed()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var b strings.Builder
	if _, err := io.Copy(&b, r); err != nil {
		t.Fatal(err)
	}
	return d.String(), []byte(b.String())
}

func TestPullWithoutRanges(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	layer := layerOf(t, tarOf(t, file("big", random(1<<20))))
	n := h.push(t, "big", imageOf(t, layer))
	digest, blob := blobOf(t, layer)
	var requests atomic.Int64
	h.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, digest) {
			return false
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(blob)))
		if requests.Add(1) <= 2 {
			w.Write(blob[:len(blob)/3*int(requests.Load())])
			panic(http.ErrAbortHandler)
		}
		w.Write(blob)
		return true
	})
	pull(t, newStore(t), n)
}

func TestPullErrors(t *testing.T) {
	t.Parallel()
	status := func(code int) func(w http.ResponseWriter, r *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			w.WriteHeader(code)
			return true
		}
	}
	blobs := func(hook func(w http.ResponseWriter, r *http.Request)) func(w http.ResponseWriter, r *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, "/blobs/") {
				return false
			}
			hook(w, r)
			return true
		}
	}
	tests := map[string]struct {
		hook     func(w http.ResponseWriter, r *http.Request) bool
		kind     Kind
		reason   string
		contains string
	}{
		"401":    {status(401), Unauthorized, "ErrImagePull", "401"},
		"403":    {status(403), Unauthorized, "ErrImagePull", "403"},
		"404":    {status(404), NotFound, "ErrImagePull", "404"},
		"429":    {status(429), Unavailable, "RegistryUnavailable", "429"},
		"500":    {status(500), Unavailable, "RegistryUnavailable", "500"},
		"teapot": {status(418), Unavailable, "RegistryUnavailable", "418"},
		"web page": {func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Content-Type", "text/html")
			w.Write([]byte("<html>"))
			return true
		}, Unsupported, "ErrImagePull", "web page"},
		"huge manifest": {func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Content-Type", string(types.OCIManifestSchema1))
			for range 50 {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					break
				}
			}
			return true
		}, TooLarge, "ErrImagePull", "more than 4194304 bytes"},
		"file redirect": {func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
			return true
		}, Unsupported, "ErrImagePull", "redirect"},
		"redirect loop": {func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, r.URL.Path, http.StatusFound)
			return true
		}, Unavailable, "RegistryUnavailable", "redirected"},
		"not JSON": {func(w http.ResponseWriter, r *http.Request) bool { w.Write([]byte("hello")); return true }, Corrupt, "ErrImagePull", "not JSON"},
		"index of both": {func(w http.ResponseWriter, r *http.Request) bool {
			w.Write([]byte(`{"schemaVersion":2,"manifests":[],"layers":[]}`))
			return true
		}, Corrupt, "ErrImagePull", "as well as"},
		"schema 1": {func(w http.ResponseWriter, r *http.Request) bool {
			w.Write([]byte(`{"schemaVersion":1,"fsLayers":[]}`))
			return true
		}, Unsupported, "ErrImagePull", "schema 1"},
		"wrong blob":   {blobs(func(w http.ResponseWriter, r *http.Request) { w.Write([]byte("nonsense")) }), Corrupt, "ErrImagePull", "instead of"},
		"missing blob": {blobs(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(404) }), NotFound, "ErrImagePull", "404"},
		"dying blob":   {blobs(func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }), Unavailable, "RegistryUnavailable", "cannot reach"},
		"blob is a page": {blobs(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
		}), Unsupported, "ErrImagePull", "web page"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHub(t)
			n := h.push(t, "app", imageOf(t, layerOf(t, tarOf(t, file("a", "a")))))
			h.intercept(test.hook)
			s := newStore(t)
			_, err := s.Pull(t.Context(), n, PullOptions{})
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("the error is %v", err)
			}
			if e.Kind != test.kind || e.Reason() != test.reason || !strings.Contains(err.Error(), test.contains) {
				t.Errorf("the error is %s, %s: %s", e.Kind, e.Reason(), err)
			}
			if _, err := s.Find(n); !errors.Is(err, ErrNotFound) {
				t.Errorf("something was kept: %v", err)
			}
		})
	}
}

func TestPullRetries(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	n := h.push(t, "app", imageOf(t, layerOf(t, tarOf(t, file("a", "a")))))
	var mu sync.Mutex
	seen := make(map[string]int)
	h.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		seen[r.URL.Path]++
		n := seen[r.URL.Path]
		mu.Unlock()
		if n <= 2 {
			w.WriteHeader([]int{429, 503}[n-1])
			return true
		}
		return false
	})
	pull(t, newStore(t), n)
}

func TestPullHangs(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	n := h.push(t, "app", imageOf(t, layerOf(t, tarOf(t, file("a", "a")))))
	h.intercept(func(w http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true })
	s := openStore(t, Config{Dir: t.TempDir(), Idle: 20 * time.Millisecond})
	if _, err := s.Pull(t.Context(), n, PullOptions{}); KindOf(err) != Unavailable {
		t.Errorf("the error is %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s = newStore(t)
	h.intercept(func(w http.ResponseWriter, r *http.Request) bool { cancel(); <-r.Context().Done(); return true })
	if _, err := s.Pull(ctx, n, PullOptions{}); KindOf(err) != Canceled || !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}

func TestPullWrongDiffID(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	img := imageOf(t, layerOf(t, tarOf(t, file("a", "a"))))
	c, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c = c.DeepCopy()
	c.RootFS.DiffIDs[0].Hex = strings.Repeat("0", 64)
	if img, err = mutate.ConfigFile(img, c); err != nil {
		t.Fatal(err)
	}
	s := newStore(t)
	_, err = s.Pull(t.Context(), h.push(t, "app", img), PullOptions{})
	if KindOf(err) != Corrupt || !strings.Contains(err.Error(), "unpacked, it has the digest") {
		t.Errorf("the error is %v", err)
	}
	if s.hasLayer("sha256:" + strings.Repeat("0", 64)) {
		t.Error("the layer was kept")
	}
}

func TestPullTooManyLayers(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	var layers []v1.Layer
	for i := range 300 {
		layers = append(layers, layerOf(t, tarOf(t, file(fmt.Sprint(i), "x"))))
	}
	_, err := newStore(t).Pull(t.Context(), h.push(t, "app", imageOf(t, layers...)), PullOptions{})
	if KindOf(err) != TooLarge || !strings.Contains(err.Error(), "300 layers") {
		t.Errorf("the error is %v", err)
	}
}

func TestPullPlatforms(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	var index v1.ImageIndex = empty.Index
	for _, p := range []v1.Platform{
		{OS: "linux", Architecture: "arm", Variant: "v6"}, {OS: "linux", Architecture: "arm", Variant: "v7"},
		{OS: "linux", Architecture: "s390x"}, {OS: "windows", Architecture: "amd64"}, {OS: "unknown", Architecture: "unknown"},
	} {
		img := imageOf(t, layerOf(t, tarOf(t, file("platform", platformString(p)))))
		c, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		c = c.DeepCopy()
		c.OS, c.Architecture, c.Variant = p.OS, p.Architecture, p.Variant
		if img, err = mutate.ConfigFile(img, c); err != nil {
			t.Fatal(err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &p}})
	}
	n := h.pushIndex(t, "multi", index)
	s := newStore(t)
	for want, p := range map[string]v1.Platform{
		"linux/arm/v7": {OS: "linux", Architecture: "arm", Variant: "v7"},
		"linux/arm/v6": {OS: "linux", Architecture: "arm", Variant: "v6"},
		"linux/s390x":  {OS: "linux", Architecture: "s390x"},
	} {
		img, err := s.Pull(t.Context(), n, PullOptions{Platform: p})
		if err != nil {
			t.Fatal(err)
		}
		if got := read(t, img, "platform"); got != want {
			t.Errorf("for %s, %s was pulled", want, got)
		}
		d, err := index.Digest()
		if err != nil {
			t.Fatal(err)
		}
		if img.ID() != n.Context()+"@"+d.String() {
			t.Errorf("the ID %s is not that of the index %s", img.ID(), d)
		}
	}
	_, err := s.Pull(t.Context(), n, PullOptions{Platform: v1.Platform{OS: "linux", Architecture: "riscv64"}})
	want := "there is no image for linux/riscv64, only for linux/arm/v6, linux/arm/v7, linux/s390x, windows/amd64"
	if KindOf(err) != NoPlatform || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("the error is %v", err)
	}
}

func TestPullAuth(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	n := h.push(t, "private", imageOf(t, layerOf(t, tarOf(t, file("a", "a")))))
	good := "Basic " + base64.StdEncoding.EncodeToString([]byte("user:right"))
	bearer := func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/token" {
			if r.Header.Get("Authorization") != good {
				w.WriteHeader(401)
				return true
			}
			if got := r.URL.Query().Get("scope"); got != "repository:private:pull" {
				t.Errorf("the scope is %q", got)
			}
			fmt.Fprint(w, `{"token":"secret"}`)
			return true
		}
		if r.Header.Get("Authorization") != "Bearer secret" {
			w.Header().Set("WWW-Authenticate", `Bearer realm="`+h.URL+`/token",service="hub, the",scope="repository:private:pull"`)
			w.WriteHeader(401)
			return true
		}
		return false
	}
	basic := func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") != good {
			w.Header().Set("WWW-Authenticate", `Basic realm="hub"`)
			w.WriteHeader(401)
			return true
		}
		return false
	}
	wrong := authn.FromConfig(authn.AuthConfig{Username: "user", Password: "wrong"})
	right := authn.FromConfig(authn.AuthConfig{Username: "user", Password: "right"})
	for name, hook := range map[string]func(http.ResponseWriter, *http.Request) bool{"bearer": bearer, "basic": basic} {
		h.intercept(hook)
		if _, err := newStore(t).Pull(t.Context(), n, PullOptions{}); KindOf(err) != Unauthorized {
			t.Errorf("%s, anonymous: %v", name, err)
		}
		if _, err := newStore(t).Pull(t.Context(), n, PullOptions{Candidates: []authn.Authenticator{wrong}}); KindOf(err) != Unauthorized {
			t.Errorf("%s, wrong: %v", name, err)
		}
		if _, err := newStore(t).Pull(t.Context(), n, PullOptions{Candidates: []authn.Authenticator{wrong, right}}); err != nil {
			t.Errorf("%s, right: %v", name, err)
		}
	}
}

// TestPullRedirectsWithoutCredentials: neither another port nor another host may see them.
func TestPullRedirectsWithoutCredentials(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	layer := layerOf(t, tarOf(t, file("a", "a")))
	n := h.push(t, "app", imageOf(t, layer))
	digest, blob := blobOf(t, layer)
	var leaked atomic.Value
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a := r.Header.Get("Authorization"); a != "" {
			leaked.Store(a)
		}
		w.Write(blob)
	}))
	defer other.Close()
	h.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") == "" {
			w.Header().Set("WWW-Authenticate", "Basic")
			w.WriteHeader(401)
			return true
		}
		if strings.HasSuffix(r.URL.Path, digest) {
			http.Redirect(w, r, other.URL+"/blob", http.StatusTemporaryRedirect)
			return true
		}
		return false
	})
	_, err := newStore(t).Pull(t.Context(), n, PullOptions{Candidates: []authn.Authenticator{authn.FromConfig(authn.AuthConfig{Username: "u", Password: "p"})}})
	if err != nil {
		t.Fatal(err)
	}
	if got := leaked.Load(); got != nil {
		t.Errorf("the other server received %s", got)
	}
}

func TestPullMirrors(t *testing.T) {
	t.Parallel()
	mirror, broken := newHub(t), newHub(t)
	broken.intercept(func(w http.ResponseWriter, r *http.Request) bool { w.WriteHeader(404); return true })
	mirror.push(t, "hub/library/app", imageOf(t, layerOf(t, tarOf(t, file("a", "mirrored")))))
	n := parse(t, "app")
	o := PullOptions{
		Registries: Registries{Mirrors: []Mirror{{Prefix: "docker.io/library", Endpoints: []string{broken.host(), mirror.host() + "/hub"}}}},
		Candidates: []authn.Authenticator{authn.FromConfig(authn.AuthConfig{Username: "u", Password: "p"})},
	}
	s := newStore(t)
	img, err := s.Pull(t.Context(), n, o)
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, img, "a"); got != "mirrored" || !strings.HasPrefix(img.ID(), "docker.io/library/app@sha256:") {
		t.Errorf("%s has %q", img.ID(), got)
	}
	if broken.count("GET /v2/library/app/manifests/latest") == 0 {
		t.Error("the first mirror was not asked")
	}
}

// rawLayer is a layer of a given blob.
func rawLayer(blob []byte, diffID string) v1.Layer {
	return &fixedLayer{Layer: static.NewLayer(blob, types.OCILayer), diffID: diffID}
}

type fixedLayer struct {
	v1.Layer
	diffID string
}

func (l *fixedLayer) DiffID() (v1.Hash, error) { return v1.NewHash(l.diffID) }

// TestPullBomb: ten gigabytes of zeros in a few megabytes, inside a file and after the archive's end.
func TestPullBomb(t *testing.T) {
	t.Parallel()
	var member bytes.Buffer
	z, err := gzip.NewWriterLevel(&member, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write(make([]byte, 64<<20)); err != nil {
		t.Fatal(err)
	}
	z.Close()
	header := tarOf(t, entry{Header: tar.Header{Typeflag: tar.TypeReg, Name: "zeros", Mode: 0o644, ModTime: epoch}})
	small := bytes.Clone(header)
	large := header[:512]
	copy(large[124:136], "113000000000") // 10 GiB less a bit, octal
	copy(large[148:156], "        ")
	sum := 0
	for _, c := range large {
		sum += int(c)
	}
	copy(large[148:156], fmt.Sprintf("%06o\x00 ", sum))
	h := newHub(t)
	for name, start := range map[string][]byte{"file": large, "after the end": small} {
		var blob bytes.Buffer
		w := gzip.NewWriter(&blob)
		w.Write(start)
		w.Close()
		for range 160 {
			blob.Write(member.Bytes())
		}
		n := h.push(t, "bomb", imageOf(t, rawLayer(blob.Bytes(), digestOf(nil))))
		s := newStore(t)
		_, err := s.Pull(t.Context(), n, PullOptions{MaxBytes: 256 << 20, MaxEntries: 1000})
		if KindOf(err) != TooLarge {
			t.Errorf("%s: the error is %v", name, err)
		}
		if usage, err := s.Usage(); err != nil || usage != 0 {
			t.Errorf("%s: %d bytes are kept, %v", name, usage, err)
		}
	}
}

func TestPullCompressions(t *testing.T) {
	t.Parallel()
	stream := tarOf(t, file("a", "content"))
	var zst bytes.Buffer
	w, err := zstd.NewWriter(&zst)
	if err != nil {
		t.Fatal(err)
	}
	w.Write(stream)
	w.Close()
	h := newHub(t)
	for name, blob := range map[string][]byte{"zstd": zst.Bytes(), "plain": stream} {
		img := pull(t, newStore(t), h.push(t, name, imageOf(t, rawLayer(blob, digestOf(stream)))))
		if got := read(t, img, "a"); got != "content" {
			t.Errorf("%s: a is %q", name, got)
		}
	}
	_, err = newStore(t).Pull(t.Context(), h.push(t, "xz", imageOf(t, rawLayer([]byte("\xfd7zXZ\x00..."), digestOf(stream)))), PullOptions{})
	if KindOf(err) != Unsupported || !strings.Contains(err.Error(), "xz") {
		t.Errorf("xz: %v", err)
	}
}

// TestPullTLS: certificates count, unless the file says otherwise.
func TestPullTLS(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.push(t, "app", imageOf(t, layerOf(t, tarOf(t, file("a", "a")))))
	secure := httptest.NewUnstartedServer(h.Config.Handler)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // of clients that are to fail
	secure.StartTLS()
	t.Cleanup(secure.Close)
	host := strings.TrimPrefix(secure.URL, "https://")
	n := parse(t, host+"/app")
	dir := t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	if err := os.WriteFile(filepath.Join(dir, "ca.pem"), ca, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "none.pem"), []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for yaml, works := range map[string]bool{
		"": false, // plain HTTP to a loopback address
		"registries: [{host: '" + host + "', ca: ca.pem}]":        true,
		"registries: [{host: '" + host + "', skipVerify: true}]":  true,
		"registries: [{host: '" + host + "', plainHTTP: true}]":   false,
		"registries: [{host: 'other.example', skipVerify: true}]": false,
	} {
		r, err := parseRegistries([]byte(yaml), dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := newStore(t).Pull(t.Context(), n, PullOptions{Registries: r}); (err == nil) != works {
			t.Errorf("%s: %v", yaml, err)
		}
	}
	if _, err := parseRegistries([]byte("registries: [{host: a.b, ca: none.pem}]"), dir); err == nil || !strings.Contains(err.Error(), "no PEM certificate") {
		t.Errorf("an empty authority: %v", err)
	}
}

// TestPullDamagedMirror: what a mirror damages comes from the original.
func TestPullDamagedMirror(t *testing.T) {
	t.Parallel()
	mirror, original := newHub(t), newHub(t)
	layer := layerOf(t, tarOf(t, file("a", random(1000))))
	img := imageOf(t, layer, layerOf(t, tarOf(t, file("b", "b"))))
	mirror.push(t, "app", img)
	n := original.push(t, "app", img)
	digest, blob := blobOf(t, layer)
	mirror.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, digest) {
			return false
		}
		w.Write(make([]byte, len(blob)))
		return true
	})
	r := Registries{Mirrors: []Mirror{{Prefix: original.host(), Endpoints: []string{mirror.host()}}}}
	if _, err := newStore(t).Pull(t.Context(), n, PullOptions{Registries: r}); err != nil {
		t.Error(err)
	}
	if original.count("GET /v2/app/blobs/"+digest) != 1 {
		t.Error("the original was not asked")
	}
}

// TestPullPlainHTTP: HTTP is no fallback, and the error says what to do.
func TestPullPlainHTTP(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.push(t, "app", imageOf(t, layerOf(t, tarOf(t, file("a", "a")))))
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, h.host())
	}
	s := openStore(t, Config{Dir: t.TempDir(), Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}})
	n := parse(t, "10.1.2.3:5000/app")
	if _, err := s.Pull(t.Context(), n, PullOptions{}); KindOf(err) != Unsupported || !strings.Contains(err.Error(), "plainHTTP") {
		t.Errorf("the error is %v", err)
	}
	r := Registries{Registries: []Registry{{Host: "10.1.2.3:5000", PlainHTTP: true}}}
	if _, err := s.Pull(t.Context(), n, PullOptions{Registries: r}); err != nil {
		t.Error(err)
	}
}

// TestPullForeign: what is not a container image is refused in words.
func TestPullForeign(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	layer := layerOf(t, tarOf(t, file("a", "a")))
	artifact := mutate.ConfigMediaType(imageOf(t, layer), "application/vnd.cncf.helm.config.v1+json")
	foreign, err := mutate.Append(imageOf(t), mutate.Addendum{Layer: layer, MediaType: types.DockerForeignLayer})
	if err != nil {
		t.Fatal(err)
	}
	odd, err := mutate.Append(imageOf(t), mutate.Addendum{Layer: layer, MediaType: "application/vnd.oci.empty.v1+json"})
	if err != nil {
		t.Fatal(err)
	}
	for contains, img := range map[string]v1.Image{
		"an artifact: its configuration": artifact, "not at the registry but elsewhere": foreign, "an artifact: its layer 1": odd, "no layers": imageOf(t),
	} {
		_, err := newStore(t).Pull(t.Context(), h.push(t, "app", img), PullOptions{})
		if KindOf(err) != Unsupported || !strings.Contains(err.Error(), contains) {
			t.Errorf("the error is %v, and should contain %q", err, contains)
		}
	}
}
