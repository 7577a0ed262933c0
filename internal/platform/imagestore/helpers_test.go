// SPDX-License-Identifier: Apache-2.0

//go:build linux

package imagestore

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	ggcr "github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// entry is an entry of a layer.
type entry struct {
	tar.Header
	content string
}

var epoch = time.Unix(1_700_000_000, 0)

func file(name, content string) entry {
	return entry{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content)), ModTime: epoch}, content}
}

func dir(name string, mode int64) entry {
	return entry{Header: tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: mode, ModTime: epoch}}
}

func symlink(name, target string) entry {
	return entry{Header: tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777, ModTime: epoch}}
}

func hardlink(name, target string) entry {
	return entry{Header: tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: target, ModTime: epoch}}
}

// tarOf is the tar stream of entries.
func tarOf(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		if err := w.WriteHeader(&e.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// layerOf is a gzipped layer of a tar stream.
func layerOf(t testing.TB, stream []byte) v1.Layer {
	t.Helper()
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(stream)), nil })
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// imageOf is an image for this machine of layers, lowest first.
func imageOf(t testing.TB, layers ...v1.Layer) v1.Image {
	t.Helper()
	img, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		t.Fatal(err)
	}
	c, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c = c.DeepCopy()
	c.OS, c.Architecture = DefaultPlatform().OS, DefaultPlatform().Architecture
	c.Config.Entrypoint = []string{"/bin/program"}
	if img, err = mutate.ConfigFile(img, c); err != nil {
		t.Fatal(err)
	}
	return img
}

// hub is a registry that counts, and misbehaves as a test wants.
type hub struct {
	*httptest.Server
	mu       sync.Mutex
	requests []string         // METHOD PATH
	sent     map[string]int64 // bytes of bodies by path
	// hook answers a request itself if it returns true.
	hook func(w http.ResponseWriter, r *http.Request) bool
}

func newHub(t testing.TB) *hub {
	t.Helper()
	h := &hub{sent: make(map[string]int64)}
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		h.requests = append(h.requests, r.Method+" "+r.URL.Path)
		hook := h.hook
		h.mu.Unlock()
		cw := &countingWriter{ResponseWriter: w, hub: h, path: r.URL.Path}
		if hook != nil && r.Method == http.MethodGet && hook(cw, r) {
			return
		}
		inner.ServeHTTP(cw, r)
	}))
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
	})
	return h
}

type countingWriter struct {
	http.ResponseWriter
	hub  *hub
	path string
}

// Write counts before it writes: who has read the answer finds it counted.
func (w *countingWriter) Write(p []byte) (int, error) {
	w.count(len(p))
	n, err := w.ResponseWriter.Write(p)
	w.count(n - len(p))
	return n, err
}

func (w *countingWriter) count(n int) {
	w.hub.mu.Lock()
	w.hub.sent[w.path] += int64(n)
	w.hub.mu.Unlock()
}

func (w *countingWriter) Flush() { w.ResponseWriter.(http.Flusher).Flush() }

func (h *hub) intercept(hook func(w http.ResponseWriter, r *http.Request) bool) {
	h.mu.Lock()
	h.hook = hook
	h.mu.Unlock()
}

// bytes is how many bytes of bodies were sent for a path.
func (h *hub) bytes(path string) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sent[path]
}

// count counts requests whose method and path contain s.
func (h *hub) count(s string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, r := range h.requests {
		if strings.Contains(r, s) {
			n++
		}
	}
	return n
}

func (h *hub) host() string { return strings.TrimPrefix(h.URL, "http://") }

// push makes an image available, and returns its name.
func (h *hub) push(t testing.TB, repository string, img v1.Image) Name {
	t.Helper()
	ref, err := name.ParseReference(h.host()+"/"+repository, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	if err := ggcr.Write(ref, img); err != nil {
		t.Fatal(err)
	}
	return parse(t, h.host()+"/"+repository)
}

func parse(t testing.TB, s string) Name {
	t.Helper()
	n, err := ParseName(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// newStore opens a store that does not wait between repetitions.
func newStore(t testing.TB) *Store {
	t.Helper()
	return openStore(t, Config{Dir: t.TempDir()})
}

func openStore(t testing.TB, c Config) *Store {
	t.Helper()
	c.backoff = func(int) time.Duration { return time.Millisecond }
	s, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeStore(t, s.dir) })
	return s
}

func pull(t testing.TB, s *Store, n Name) *Image {
	t.Helper()
	img, err := s.Pull(t.Context(), n, PullOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// read reads a file of an image.
func read(t testing.TB, img *Image, name string) string {
	t.Helper()
	v, err := img.View()
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	b, err := v.ReadFile(name, 1<<20)
	if err != nil {
		return fmt.Sprintf("error: %s", err)
	}
	return string(b)
}

// pushIndex makes an index available, and returns its name.
func (h *hub) pushIndex(t testing.TB, repository string, index v1.ImageIndex) Name {
	t.Helper()
	ref, err := name.ParseReference(h.host()+"/"+repository, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	if err := ggcr.WriteIndex(ref, index); err != nil {
		t.Fatal(err)
	}
	return parse(t, h.host()+"/"+repository)
}
