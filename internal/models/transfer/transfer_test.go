// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"diwan.dev/diwan/internal/models/store"
	"diwan.dev/diwan/internal/platform/imagestore"
	"diwan.dev/diwan/internal/platform/registry"
)

// moverEnv makes the test binary a process that does "push|STORE|NAME" or "pull|STORE|NAME" and ends.
const moverEnv = "DIWAN_TEST_MOVER"

func TestMain(m *testing.M) {
	if args := strings.Split(os.Getenv(moverEnv), "|"); len(args) == 3 {
		if err := mover(args[0], args[1], args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func mover(what, dir, text string) error {
	s, err := store.Open(dir)
	if err != nil {
		return err
	}
	n, err := store.ParseName(text)
	if err != nil {
		return err
	}
	if what == "pull" {
		_, err = Pull(context.Background(), s, n, n, Options{})
		return err
	}
	v, err := s.Find(store.Name{Repository: "model", Tag: "v1"})
	if err != nil {
		return err
	}
	return Push(context.Background(), s, v, n, Options{})
}

// hub is the laptop's registry, for everybody.
type hub struct {
	host string
}

func newHub(t testing.TB) *hub {
	t.Helper()
	opened, err := registry.Open(registry.Config{
		Dir: filepath.Join(t.TempDir(), "registry"), Authorize: func(*http.Request) (registry.Access, error) { return registry.Write, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	wait.Go(func() { _ = opened.Serve(ctx, l) })
	t.Cleanup(func() { cancel(); wait.Wait(); opened.Close() })
	return &hub{host: l.Addr().String()}
}

func (h *hub) name(t testing.TB, text string) store.Name {
	t.Helper()
	n, err := store.ParseName(h.host + "/" + text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func newStore(t testing.TB) *store.Store {
	t.Helper()
	s, err := store.Open(filepath.Join(t.TempDir(), "models"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// saved is a version model:v1 of random files of a size.
func saved(t testing.TB, s *store.Store, files int, size int) (*store.Version, string) {
	t.Helper()
	dir := t.TempDir()
	for i := range files {
		b := make([]byte, size)
		rand.Read(b)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("w%d.bin", i)), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	v, err := s.Save(t.Context(), dir, store.Name{Repository: "model", Tag: "v1"}, store.SaveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return v, dir
}

func same(t testing.TB, a, b string) {
	t.Helper()
	err := filepath.WalkDir(a, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, _ := filepath.Rel(a, path)
		want, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		got, err := os.ReadFile(filepath.Join(b, name))
		if err == nil && string(got) != string(want) {
			err = fmt.Errorf("%s differs", name)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestPushPull(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	from, to := newStore(t), newStore(t)
	v, dir := saved(t, from, 6, 5<<20) // beyond what is sent in one request
	n := h.name(t, "team/model:v1")
	var last Progress
	var mu sync.Mutex
	o := Options{Progress: func(p Progress) { mu.Lock(); defer mu.Unlock(); last = p }}
	if err := Push(t.Context(), from, v, n, o); err != nil {
		t.Fatal(err)
	}
	if last.Complete != last.Blobs || last.Skipped != 0 {
		t.Errorf("the push ends at %+v", last)
	}
	if err := Push(t.Context(), from, v, n, o); err != nil || last.Skipped != last.Total {
		t.Errorf("the second push: %v, %+v", err, last)
	}
	got, err := Pull(t.Context(), to, n, n, o)
	if err != nil {
		t.Fatal(err)
	}
	if got.Manifest.Digest != v.Manifest.Digest || last.Bytes != last.Total {
		t.Errorf("pulled %s at %+v", got.Manifest.Digest, last)
	}
	out := t.TempDir()
	if err := to.Export(t.Context(), got, out, store.ExportOptions{}); err != nil {
		t.Fatal(err)
	}
	same(t, dir, out)
	byDigest := n
	byDigest.Tag, byDigest.Digest = "", v.Manifest.Digest
	if _, err := Pull(t.Context(), to, byDigest, byDigest, o); err != nil || last.Skipped != last.Total {
		t.Errorf("pulled by digest: %v, %+v", err, last)
	}
	// Other repositories of a registry share blobs.
	other := h.name(t, "team/other:v1")
	if _, err := Copy(t.Context(), n, other, Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := Pull(t.Context(), newStore(t), other, other, Options{}); err != nil {
		t.Error(err)
	}
	// From one registry to another.
	h2 := newHub(t)
	if d, err := Copy(t.Context(), n, h2.name(t, "a/b:v1"), o); err != nil || d != v.Manifest.Digest {
		t.Errorf("copied %s, %v", d, err)
	}
	if _, err := Pull(t.Context(), newStore(t), h2.name(t, "a/b:v1"), n, Options{}); err != nil {
		t.Error(err)
	}
	if m, config, err := Inspect(t.Context(), n, Options{}); err != nil || m.Digest != v.Manifest.Digest || len(config) == 0 {
		t.Errorf("inspected: %v", err)
	}
	missing := h.name(t, "no/such:v1")
	if _, err := Pull(t.Context(), to, missing, missing, Options{}); !errors.Is(err, ErrNotFound) {
		t.Errorf("what is not there: %v", err)
	}
}

// TestKilled: 20 kills of pushes and pulls; the last one of each goes on and ends, and all is whole.
func TestKilled(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	from, pulledDir := newStore(t), filepath.Join(t.TempDir(), "models")
	v, dir := saved(t, from, 8, 6<<20)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	n := h.name(t, "team/model:v1")
	run := func(what, dir string, kill bool) {
		t.Helper()
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), moverEnv+"="+what+"|"+dir+"|"+n.String())
		cmd.Stderr = t.Output()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if kill {
			time.Sleep(time.Duration(10+mathrand.IntN(120)) * time.Millisecond) // a random moment, not a wait for something
			cmd.Process.Kill()
			cmd.Wait() // it may have ended before
			return
		}
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%s after the kills: %v", what, err)
		}
	}
	storeDir := from.Dir()
	for range 10 {
		run("push", storeDir, true)
	}
	run("push", storeDir, false)
	for range 10 {
		run("pull", pulledDir, true)
		s, err := store.Open(pulledDir)
		if err != nil {
			t.Fatal(err)
		}
		versions, err := s.List()
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range versions {
			for _, d := range v.Manifest.Blobs() {
				f, err := s.Open(d)
				if err != nil {
					t.Fatal(err)
				}
				got, err := digest.FromReader(f)
				f.Close()
				if err != nil || got != d.Digest {
					t.Fatalf("%s is %s, %v", d.Digest, got, err)
				}
			}
		}
	}
	run("pull", pulledDir, false)
	s, err := store.Open(pulledDir)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Find(n)
	if err != nil || got.Manifest.Digest != v.Manifest.Digest {
		t.Fatal(err)
	}
	out := t.TempDir()
	if err := s.Export(t.Context(), got, out, store.ExportOptions{}); err != nil {
		t.Fatal(err)
	}
	same(t, dir, out)
	if _, err := s.Prune(t.Context(), store.PruneOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"work", "uploads"} {
		if left, err := os.ReadDir(filepath.Join(pulledDir, d)); err != nil || len(left) > 0 {
			t.Errorf("%s has %d entries left, %v", d, len(left), err)
		}
	}
}

// proxy stands before a registry and spoils answers.
func proxy(t testing.TB, h *hub, spoil func(w http.ResponseWriter, r *http.Request, next http.Handler)) *hub {
	t.Helper()
	next := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := r.Clone(r.Context())
		out.RequestURI, out.URL.Scheme, out.URL.Host, out.Host = "", "http", h.host, h.host
		resp, err := http.DefaultTransport.RoundTrip(out)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer resp.Body.Close()
		for k, v := range resp.Header {
			w.Header()[k] = v
		}
		w.WriteHeader(resp.StatusCode)
		buffer := make([]byte, 64<<10)
		for {
			n, err := resp.Body.Read(buffer)
			if _, werr := w.Write(buffer[:n]); werr != nil || err != nil {
				return
			}
		}
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { spoil(w, r, next) }))
	t.Cleanup(server.Close)
	return &hub{host: strings.TrimPrefix(server.URL, "http://")}
}

// cut ends a connection after some bytes of the answer.
type cut struct {
	http.ResponseWriter
	left int
}

func (c *cut) Write(p []byte) (int, error) {
	if len(p) > c.left {
		c.ResponseWriter.Write(p[:c.left])
		c.ResponseWriter.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	c.left -= len(p)
	return c.ResponseWriter.Write(p)
}

// TestBrokenConnections: a pull goes on by a range where the connection broke, a push where the registry says.
func TestBrokenConnections(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	from := newStore(t)
	v, dir := saved(t, from, 2, 9<<20)
	var ranges, patches, resumed atomic.Int64
	p := proxy(t, h, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		switch {
		case r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/sha256:"):
			if r.Header.Get("Range") != "" {
				ranges.Add(1)
			}
			next.ServeHTTP(&cut{w, 5 << 20}, r)
		case r.Method == http.MethodPatch:
			if r.Header.Get("Content-Range") != "" {
				resumed.Add(1)
			}
			if patches.Add(1) <= 2 {
				r.Body = &short{r.Body, 3 << 20}
			}
			next.ServeHTTP(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
	fast := Options{pause: func(int) time.Duration { return time.Millisecond }}
	n := p.name(t, "m:v1")
	if err := Push(t.Context(), from, v, n, fast); err != nil {
		t.Fatal(err)
	}
	if resumed.Load() == 0 {
		t.Error("no upload was resumed")
	}
	s := newStore(t)
	got, err := Pull(t.Context(), s, n, n, fast)
	if err != nil {
		t.Fatal(err)
	}
	if ranges.Load() == 0 {
		t.Error("no download was resumed")
	}
	out := t.TempDir()
	if err := s.Export(t.Context(), got, out, store.ExportOptions{}); err != nil {
		t.Fatal(err)
	}
	same(t, dir, out)
}

// short is a body that breaks.
type short struct {
	body interface {
		Read([]byte) (int, error)
		Close() error
	}
	left int
}

func (s *short) Read(p []byte) (int, error) {
	if s.left == 0 {
		return 0, errors.New("broken")
	}
	n, err := s.body.Read(p[:min(len(p), s.left)])
	s.left -= n
	return n, err
}
func (s *short) Close() error { return s.body.Close() }

// TestHostileRegistries: wrong content, manifests and places are refused with words.
func TestHostileRegistries(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	from := newStore(t)
	v, _ := saved(t, from, 1, 1<<20)
	if err := Push(t.Context(), from, v, h.name(t, "m:v1"), Options{}); err != nil {
		t.Fatal(err)
	}
	isBlob := func(r *http.Request) bool {
		return r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/sha256:")
	}
	isManifest := func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/manifests/") }
	for _, c := range []struct {
		name, want string
		push       bool
		spoil      func(w http.ResponseWriter, r *http.Request) bool
	}{
		{"wrong blob", "digest", false, func(w http.ResponseWriter, r *http.Request) bool {
			if isBlob(r) {
				w.Write(make([]byte, 1<<20))
			}
			return isBlob(r)
		}},
		{"endless manifest", "more than", false, func(w http.ResponseWriter, r *http.Request) bool {
			for isManifest(r) {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return true
				}
			}
			return false
		}},
		{"web page", "not JSON", false, func(w http.ResponseWriter, r *http.Request) bool {
			if isManifest(r) {
				w.Write([]byte("<html>"))
			}
			return isManifest(r)
		}},
		{"forbidden", "model login", false, func(w http.ResponseWriter, r *http.Request) bool {
			if isManifest(r) {
				w.WriteHeader(http.StatusForbidden)
			}
			return isManifest(r)
		}},
		{"place without TLS elsewhere is fine only for plain registries", "cannot reach", true, func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPost {
				w.Header().Set("Location", "http://127.0.0.1:1/steal")
				w.WriteHeader(http.StatusAccepted)
				return true
			}
			return false
		}},
		{"no place", "does not say where", true, func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPost {
				w.WriteHeader(http.StatusAccepted)
				return true
			}
			return false
		}},
		{"refused manifest", "MANIFEST_INVALID", true, func(w http.ResponseWriter, r *http.Request) bool {
			if isManifest(r) {
				w.WriteHeader(http.StatusBadRequest)
				w.Write([]byte(`{"errors":[{"code":"MANIFEST_INVALID","message":"no"}]}`))
			}
			return isManifest(r)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			target := h
			if c.push {
				target = newHub(t)
			}
			p := proxy(t, target, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				if !c.spoil(w, r) {
					next.ServeHTTP(w, r)
				}
			})
			o := Options{pause: func(int) time.Duration { return time.Millisecond }}
			n := p.name(t, "m:v1")
			var err error
			if c.push {
				err = Push(t.Context(), from, v, n, o)
			} else {
				s := newStore(t)
				_, err = Pull(t.Context(), s, n, n, o)
				if all, _ := s.List(); len(all) > 0 {
					t.Error("it is in the store")
				}
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, not about %q", err, c.want)
			}
		})
	}
}

// TestMirrors: a mirror comes first, and what it cannot give comes from the original.
func TestMirrors(t *testing.T) {
	t.Parallel()
	original, mirror := newHub(t), newHub(t)
	from := newStore(t)
	v, _ := saved(t, from, 1, 1000)
	n := original.name(t, "m:v1")
	if err := Push(t.Context(), from, v, n, Options{}); err != nil {
		t.Fatal(err)
	}
	o := Options{Registries: imagestore.Registries{Mirrors: []imagestore.Mirror{{Prefix: original.host, Endpoints: []string{mirror.host + "/hub"}}}}}
	if _, err := Pull(t.Context(), newStore(t), n, n, o); err != nil {
		t.Errorf("by way of an empty mirror: %v", err)
	}
	if err := Push(t.Context(), from, v, mirror.name(t, "hub/only:v1"), Options{}); err != nil {
		t.Fatal(err)
	}
	only := original.name(t, "only:v1")
	if _, err := Pull(t.Context(), newStore(t), only, only, o); err != nil {
		t.Errorf("what only the mirror has: %v", err)
	}
}

// TestNoTLS: a registry that is not on loopback is not asked without TLS.
func TestNoTLS(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	_, port, _ := net.SplitHostPort(h.host)
	n, err := store.ParseName("models.localtest.invalid:" + port + "/m:v1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Pull(t.Context(), newStore(t), n, n, Options{}); err == nil {
		t.Error("it was pulled")
	}
}
