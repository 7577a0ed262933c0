// SPDX-License-Identifier: Apache-2.0

//go:build linux

package imagestore

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	ocilayout "github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// sample is an image with all kinds of files.
func sample(t testing.TB) v1.Image {
	setuid := file("bin/su", "su")
	setuid.Mode = 0o4755
	tagged := file("tagged", "tagged")
	tagged.PAXRecords = map[string]string{"SCHILY.xattr.user.color": "blue"}
	return imageOf(t,
		layerOf(t, tarOf(t, dir("bin", 0o755), setuid, hardlink("bin/su2", "bin/su"), symlink("sbin", "bin"), tagged, file("zero", strings.Repeat("\x00", 300<<10)))),
		layerOf(t, tarOf(t, file("bin/.wh.su", ""), dir("tmp", 0o1777), file("empty", ""))))
}

func TestSaveAndLoad(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	n := h.push(t, "acme/app:v1", sample(t))
	for _, keep := range []bool{false, true} {
		s := openStore(t, Config{Dir: t.TempDir(), KeepBlobs: keep})
		img := pull(t, s, n)
		if err := s.Tag(n, parse(t, "acme/other:v2")); err != nil {
			t.Fatal(err)
		}
		var archive bytes.Buffer
		if err := s.Save(t.Context(), &archive, n, parse(t, "acme/other:v2")); err != nil {
			t.Fatal(err)
		}
		var zipped bytes.Buffer
		z := gzip.NewWriter(&zipped)
		z.Write(archive.Bytes())
		z.Close()
		path := filepath.Join(t.TempDir(), "archive.tar")
		if err := os.WriteFile(path, archive.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		for how, load := range map[string]func(s *Store) ([]*Image, error){
			"stream":     func(s *Store) ([]*Image, error) { return s.LoadReader(t.Context(), &archive, LoadOptions{}) },
			"compressed": func(s *Store) ([]*Image, error) { return s.LoadReader(t.Context(), &zipped, LoadOptions{}) },
			"file":       func(s *Store) ([]*Image, error) { return s.Load(t.Context(), path, LoadOptions{}) },
		} {
			other := newStore(t)
			images, err := load(other)
			if err != nil {
				t.Fatalf("%s: %v", how, err)
			}
			if len(images) != 1 || images[0].ConfigDigest() != img.ConfigDigest() || keep != (images[0].Digest() == img.Digest()) {
				t.Errorf("%s, blobs kept %v: loaded %d images", how, keep, len(images))
			}
			for _, want := range []Name{n, parse(t, "acme/other:v2")} {
				found, err := other.Find(want)
				if err != nil {
					t.Fatalf("%s: %v", how, err)
				}
				if got := read(t, found, "sbin/su2"); got != "su" {
					t.Errorf("%s: sbin/su2 is %q", how, got)
				}
			}
		}
		// Another reader of such archives agrees.
		tag, err := name.NewTag("docker.io/acme/other:v2")
		if err != nil {
			t.Fatal(err)
		}
		foreign, err := tarball.ImageFromPath(path, &tag)
		if err != nil {
			t.Fatal(err)
		}
		d, err := foreign.ConfigName()
		if err != nil || d.String() != img.ConfigDigest() {
			t.Errorf("another reader sees the configuration %s, %v", d, err)
		}
		layers, err := foreign.Layers()
		if err != nil || len(layers) != 2 {
			t.Errorf("another reader sees %d layers, %v", len(layers), err)
		}
	}
}

func TestLoadDocker(t *testing.T) {
	t.Parallel()
	ref, err := name.ParseReference("acme/app:v1")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "docker.tar")
	if err := tarball.WriteToFile(path, ref, sample(t)); err != nil {
		t.Fatal(err)
	}
	s := newStore(t)
	images, err := s.Load(t.Context(), path, LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, images[0], "bin/su2"); got != "su" {
		t.Errorf("bin/su2 is %q", got)
	}
	if _, err := s.Find(parse(t, "acme/app:v1")); err != nil {
		t.Error(err)
	}
	var again bytes.Buffer
	if err := s.Save(t.Context(), &again, parse(t, "acme/app:v1")); err != nil {
		t.Error(err)
	}
}

func TestLoadLayout(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p, err := ocilayout.Write(dir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.AppendImage(sample(t), ocilayout.WithAnnotations(map[string]string{refAnnotation: "acme/app:v3"})); err != nil {
		t.Fatal(err)
	}
	if err := p.AppendImage(imageOf(t, layerOf(t, tarOf(t, file("nameless", "x"))))); err != nil {
		t.Fatal(err)
	}
	s := newStore(t)
	images, err := s.Load(t.Context(), dir, LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(images) != 2 || images[0].ID() != "docker.io/acme/app@"+images[0].Digest() {
		t.Errorf("loaded %d images, %s", len(images), images[0].ID())
	}
	if found, err := s.FindDigest(images[1].Digest()); err != nil || read(t, found, "nameless") != "x" {
		t.Errorf("the image without a name: %v", err)
	}
	// A damaged blob.
	blobs, err := filepath.Glob(filepath.Join(dir, "blobs/sha256/*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blobs {
		if err := os.WriteFile(b, []byte("damage"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := newStore(t).Load(t.Context(), dir, LoadOptions{}); KindOf(err) != Corrupt {
		t.Errorf("the error is %v", err)
	}
}

func TestLoadHostile(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		content  string
		contains string
	}{
		"empty":        {"", "neither an OCI layout"},
		"text":         {strings.Repeat("text", 1000), "not a tar file"},
		"another tar":  {string(tarOf(t, file("a", "b"))), "neither an OCI layout"},
		"path out":     {string(tarOf(t, file("manifest.json", `[{"Config":"../../../etc/passwd","Layers":[]}]`))), "cannot read its configuration"},
		"link loop":    {string(tarOf(t, symlink("index.json", "index.json"))), "neither an OCI layout"},
		"huge index":   {string(tarOf(t, file("index.json", strings.Repeat(" ", 5<<20)))), "at most 4194304"},
		"no images":    {string(tarOf(t, file("index.json", `{"schemaVersion":2,"manifests":[]}`))), "no images"},
		"missing blob": {string(tarOf(t, file("index.json", `{"schemaVersion":2,"manifests":[{"size":3,"digest":"sha256:`+strings.Repeat("a", 64)+`"}]}`))), "is missing"},
		"bad digest":   {string(tarOf(t, file("index.json", `{"schemaVersion":2,"manifests":[{"size":3,"digest":"sha512:../../x"}]}`))), "malformed"},
		"bad name":     {string(tarOf(t, file("index.json", `{"schemaVersion":2,"manifests":[{"size":3,"annotations":{"io.containerd.image.name":"../UP"},"digest":"sha256:`+strings.Repeat("a", 64)+`"}]}`))), "not an image's name"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := newStore(t).LoadReader(t.Context(), strings.NewReader(test.content), LoadOptions{})
			if err == nil || !strings.Contains(err.Error(), test.contains) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// TestSaveInexactLayer: a stream that cannot be written again from the files is kept.
func TestSaveInexactLayer(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	n := h.push(t, "twice", imageOf(t, layerOf(t, tarOf(t, file("a", "first"), file("a", "second")))))
	s := newStore(t)
	img := pull(t, s, n)
	if info, err := s.layerInfo(img.Layers()[0]); err != nil || info.Exact || !info.Kept {
		t.Errorf("the layer is %+v, %v", info, err)
	}
	var b bytes.Buffer
	if err := s.Save(t.Context(), &b, n); err != nil {
		t.Fatal(err)
	}
	if _, err := newStore(t).LoadReader(t.Context(), &b, LoadOptions{}); err != nil {
		t.Error(err)
	}
}

// TestUnreadableImage: what its owner cannot read can be pulled, saved and removed.
func TestUnreadableImage(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	secret, shadow := file("d/secret", "s"), file("shadow", "root:*:")
	shadow.Mode = 0
	n := h.push(t, "app", imageOf(t, layerOf(t, tarOf(t, dir("d", 0), secret, shadow))))
	s := newStore(t)
	pull(t, s, n)
	var b bytes.Buffer
	if err := s.Save(t.Context(), &b, n); err != nil {
		t.Error(err)
	}
	if err := s.Remove(n); err != nil {
		t.Error(err)
	}
	if got := append(workDirs(t, s), globNames(t, s, "layers")...); len(got) != 0 {
		t.Errorf("left: %q", got)
	}
}

func globNames(t testing.TB, s *Store, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(s.path(dir))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestTagAndRemove(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	base := layerOf(t, tarOf(t, file("base", "base")))
	one, two := h.push(t, "one", imageOf(t, base)), h.push(t, "two", imageOf(t, base, layerOf(t, tarOf(t, file("x", "x")))))
	s := newStore(t)
	pull(t, s, one)
	pull(t, s, two)
	alias := parse(t, "alias:v1")
	if err := s.Tag(one, alias); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(one); err != nil {
		t.Fatal(err)
	}
	if img, err := s.Find(alias); err != nil || read(t, img, "base") != "base" {
		t.Errorf("the other name: %v", err)
	}
	if err := s.Tag(two, alias); err != nil { // the first image keeps its digest
		t.Fatal(err)
	}
	if img, err := s.Find(alias); err != nil || read(t, img, "x") != "x" {
		t.Errorf("the moved name: %v", err)
	}
	if images, err := s.List(); err != nil || len(images) != 2 {
		t.Errorf("there are %d images, %v", len(images), err)
	}
	for _, n := range []Name{alias, two} {
		if err := s.Remove(n); err != nil {
			t.Fatal(err)
		}
	}
	if got := globNames(t, s, "layers"); len(got) != 1 {
		t.Errorf("layers are left: %q", got)
	}
	if err := s.Remove(two); !errors.Is(err, ErrNotFound) || KindOf(err) != NotFound {
		t.Errorf("removed again: %v", err)
	}
	if err := s.Tag(two, alias); KindOf(err) != NotFound {
		t.Errorf("tagged: %v", err)
	}
}

func TestPrune(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	s := newStore(t)
	base := layerOf(t, tarOf(t, file("base", strings.Repeat("b", 1000))))
	age := func(img *Image, d time.Duration) {
		at := time.Now().Add(-d)
		if err := os.Chtimes(s.path("images", digestHex(img.Digest())), at, at); err != nil {
			t.Fatal(err)
		}
	}
	var names []Name
	for i := range 5 {
		n := h.push(t, fmt.Sprintf("app%d", i), imageOf(t, base, layerOf(t, tarOf(t, file("own", strings.Repeat(fmt.Sprint(i), 1000))))))
		names = append(names, n)
		age(pull(t, s, n), time.Duration(i+1)*time.Hour)
	}
	left := func() string {
		images, err := s.List()
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, img := range images {
			all = append(all, strings.TrimSuffix(img.asked.Name[len(img.asked.Name)-len("0:latest"):], ":latest"))
		}
		return strings.Join(all, "")
	}
	steps := []struct {
		reason string
		o      PruneOptions
		left   string
		bytes  int64
	}{
		{"nothing asks for it", PruneOptions{}, "01234", 6000},
		{"below the high mark", PruneOptions{HighBytes: 6000, LowBytes: 100}, "01234", 6000},
		{"the oldest goes; the one in use stays", PruneOptions{HighBytes: 5999, LowBytes: 5000, InUse: func(img *Image) bool { return img.Is(names[4].String()) }}, "0124", 5000},
		{"too young", PruneOptions{HighBytes: 1, LowBytes: 0, MinAge: 100 * time.Hour}, "0124", 5000},
		{"too old", PruneOptions{MaxAge: 150 * time.Minute}, "01", 3000},
		{"all but the young", PruneOptions{All: true, MinAge: 90 * time.Minute}, "0", 2000},
		{"all", PruneOptions{All: true}, "", 0},
	}
	for _, step := range steps {
		p, err := s.Prune(t.Context(), step.o)
		if err != nil {
			t.Fatal(err)
		}
		usage, err := s.Usage()
		if err != nil {
			t.Fatal(err)
		}
		if got := left(); got != step.left || usage != step.bytes || p.Left != step.bytes {
			t.Errorf("%s: left are %q with %d bytes, %d reported; want %q with %d", step.reason, got, usage, p.Left, step.left, step.bytes)
		}
	}
	for _, d := range []string{"images", "names", "blobs", "layers"} {
		if got := globNames(t, s, d); len(got) != 0 {
			t.Errorf("%s has %q", d, got)
		}
	}
}

// TestPruneWhilePulling: what a running pull has brought so far is not swept.
func TestPruneWhilePulling(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	var layers []v1.Layer
	for i := range 8 {
		layers = append(layers, layerOf(t, tarOf(t, file(fmt.Sprint(i), random(10_000)))))
	}
	n := h.push(t, "app", imageOf(t, layers...))
	s := newStore(t)
	ctx, cancel := context.WithCancel(t.Context())
	pruned := make(chan struct{})
	go func() {
		defer close(pruned)
		for ctx.Err() == nil {
			if _, err := s.Prune(context.Background(), PruneOptions{}); err != nil {
				t.Error(err)
			}
		}
	}()
	for range 5 {
		img := pull(t, s, n)
		for i := range 8 {
			if got := read(t, img, fmt.Sprint(i)); len(got) != 10_000 {
				t.Errorf("file %d is gone: %.80s", i, got)
			}
		}
		if err := s.Remove(n); err != nil {
			t.Error(err)
		}
	}
	cancel()
	<-pruned
}

func TestOpen(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "b")
	s := openStore(t, Config{Dir: dir})
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
	if err := os.WriteFile(filepath.Join(dir, "store.json"), []byte(`{"version":99}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Config{Dir: dir}); err == nil || !strings.Contains(err.Error(), "format 99") {
		t.Errorf("the error is %v", err)
	}
	_ = s
}

type mapFiles map[string]string

func (m mapFiles) ReadFile(name string, limit int64) ([]byte, error) {
	if c, ok := m[name]; ok {
		return []byte(c), nil
	}
	return nil, os.ErrNotExist
}

func TestUser(t *testing.T) {
	t.Parallel()
	files := mapFiles{
		passwdFile: "root:x:0:0:root:/root:/bin/sh\n# comment\nbroken\nweb:x:101:102:Web:/srv:/bin/sh\nhuge:x:4294967296:0::/:\nneg:x:-1:0::/:\n",
		groupFile:  "root:x:0:root\nweb:x:102:\nlog:x:7:web,root\nadm:x:4:web\nhuge:x:4294967297:web\n",
	}
	for _, test := range []struct {
		spec string
		want User
		err  string
	}{
		{"", User{Name: "root", Home: "/root", Groups: []int64{7}, Numeric: true}, ""},
		{"web", User{Name: "web", UID: 101, GID: 102, Groups: []int64{4, 7}, Home: "/srv"}, ""},
		{"101", User{Name: "web", UID: 101, GID: 102, Groups: []int64{4, 7}, Home: "/srv", Numeric: true}, ""},
		{"web:log", User{Name: "web", UID: 101, GID: 7, Groups: []int64{4}, Home: "/srv"}, ""},
		{"5000:6000", User{UID: 5000, GID: 6000, Home: "/", Numeric: true}, ""},
		{"5000", User{UID: 5000, Home: "/", Numeric: true}, ""},
		{"nobody", User{}, "no such user"},
		{"web:nothing", User{}, "no group"},
		{"4294967296", User{}, "larger than 2147483647"},
		{"99999999999999999999999999", User{}, "larger than 2147483647"},
		{"0:4294967296", User{}, "larger than 2147483647"},
		{"-1", User{}, "negative"},
		{"huge", User{}, "no such user"},
		{":5", User{}, "no user"},
		{"5:", User{}, "no group"},
	} {
		got, err := findUser(files, test.spec)
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%q: the error is %v", test.spec, err)
			}
			continue
		}
		if err != nil || !cmp.Equal(got, test.want) {
			t.Errorf("%q: %v %s", test.spec, err, cmp.Diff(test.want, got))
		}
	}
}

// TestHostileUserFiles: they are read inside the image, if they are files, and bounded.
func TestHostileUserFiles(t *testing.T) {
	t.Parallel()
	fifo := entry{Header: tar.Header{Typeflag: tar.TypeFifo, Name: "etc/passwd", Mode: 0o644}}
	h := newHub(t)
	s := newStore(t)
	for name, test := range map[string]struct {
		entries  []entry
		contains string
	}{
		"fifo":     {[]entry{fifo}, "not a regular file"},
		"absolute": {[]entry{symlink("etc/passwd", "/etc/hostname")}, "no such user"},
		"up":       {[]entry{symlink("etc/passwd", "../../../../../../etc/passwd")}, "symbolic links"},
		"proc":     {[]entry{symlink("etc/passwd", "/proc/self/environ")}, "no such user"},
		"huge":     {[]entry{file("etc/passwd", "root:x:0:0::/:\n"), file("etc/group", "g:x:1:"+strings.Repeat("u,", 5<<20)+"\n")}, "more than 1048576 bytes"},
	} {
		img := pull(t, s, h.push(t, "app-"+strings.ToLower(name), imageOf(t, layerOf(t, tarOf(t, test.entries...)))))
		_, err := img.User("daemon")
		if name == "huge" {
			_, err = img.User("root")
		}
		if err == nil || !strings.Contains(err.Error(), test.contains) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}

func TestParseName(t *testing.T) {
	t.Parallel()
	hex := strings.Repeat("a", 64)
	for in, want := range map[string]string{
		"busybox":                           "docker.io/library/busybox:latest",
		"busybox:1.36":                      "docker.io/library/busybox:1.36",
		"acme/app":                          "docker.io/acme/app:latest",
		"index.docker.io/acme/app":          "docker.io/acme/app:latest",
		"docker.io/busybox":                 "docker.io/library/busybox:latest",
		"localhost/app":                     "localhost/app:latest",
		"localhost:5000/app:v1":             "localhost:5000/app:v1",
		"[::1]:5000/app":                    "[::1]:5000/app:latest",
		"registry.k8s.io/a/b/c__d--e:x":     "registry.k8s.io/a/b/c__d--e:x",
		"busybox@sha256:" + hex:             "docker.io/library/busybox@sha256:" + hex,
		"ghcr.io/acme/app:v1@sha256:" + hex: "ghcr.io/acme/app:v1@sha256:" + hex,
		"REGISTRY.example/app":              "REGISTRY.example/app:latest",
	} {
		n, err := ParseName(in)
		if err != nil || n.String() != want {
			t.Errorf("%s is %s, %v; want %s", in, n, err, want)
		}
	}
	for _, in := range []string{
		"", " ", "UPPER", "a b", "../a", "a/../b", "a//b", "/a", "a/", "a:", "a:-x", "a@", "a@sha256:abc", "a@sha512:" + hex + hex, "a@sha256:" + strings.ToUpper(hex), hex,
		"a:" + strings.Repeat("x", 129), strings.Repeat("a", 300), strings.Repeat("a", 3000), "http://a/b", "a\x00b", "a\nb", "é", "host:99999999/a", "-host.example/a", "a:b:c", "a@sha256:" + hex + "@sha256:" + hex,
	} {
		_, err := ParseName(in)
		var e *Error
		if !errors.As(err, &e) || e.Reason() != "InvalidImageName" || len(err.Error()) > 600 {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func FuzzParseName(f *testing.F) {
	f.Add("busybox:1@sha256:" + strings.Repeat("a", 64))
	f.Add("[::1]:5000/a/b")
	f.Fuzz(func(t *testing.T, s string) {
		n, err := ParseName(s)
		if err != nil {
			return
		}
		again, err := ParseName(n.String())
		if err != nil || again != n {
			t.Errorf("%q is %q, and that is %q, %v", s, n, again, err)
		}
		if strings.Contains(n.Context(), "..") || strings.ContainsAny(n.String(), "\x00\n \\") {
			t.Errorf("%q is accepted as %q", s, n)
		}
	})
}

func TestReadRegistries(t *testing.T) {
	t.Parallel()
	if r, err := ReadRegistries(filepath.Join(t.TempDir(), "none.yaml")); err != nil || len(r.Mirrors) != 0 {
		t.Errorf("a missing file: %v", err)
	}
	r, err := parseRegistries([]byte(`
mirrors:
- prefix: docker.io
  endpoints: [one.example]
- prefix: docker.io/library
  endpoints: [two.example/hub, localhost:5000]
registries:
- host: 10.0.0.7:5000
  plainHTTP: true
- host: old.example
  skipVerify: true
`), "/etc")
	if err != nil {
		t.Fatal(err)
	}
	urls := func(name string) (all []string) {
		for _, e := range r.endpoints(parse(t, name)) {
			all = append(all, e.base+"/"+e.repository)
		}
		return all
	}
	for name, want := range map[string][]string{
		"busybox":             {"https://two.example/hub/library/busybox", "http://localhost:5000/library/busybox", "https://registry-1.docker.io/library/busybox"},
		"acme/app":            {"https://one.example/acme/app", "https://registry-1.docker.io/acme/app"},
		"docker.io.evil/a":    {"https://docker.io.evil/a"},
		"10.0.0.7:5000/a":     {"http://10.0.0.7:5000/a"},
		"10.0.0.8:5000/a":     {"https://10.0.0.8:5000/a"},
		"192.168.1.1/a":       {"https://192.168.1.1/a"},
		"127.1.2.3:5000/a":    {"http://127.1.2.3:5000/a"},
		"[::1]:5000/a":        {"http://[::1]:5000/a"},
		"localhost/a":         {"http://localhost/a"},
		"localhost.example/a": {"https://localhost.example/a"},
	} {
		if got := urls(name); !slices.Equal(got, want) {
			t.Errorf("%s is at %q, want %q", name, got, want)
		}
	}
	if e := r.endpoints(parse(t, "old.example/a"))[0]; !e.tls.InsecureSkipVerify {
		t.Error("skipVerify is not heeded")
	}
	if e := r.endpoints(parse(t, "new.example/a"))[0]; e.tls.InsecureSkipVerify {
		t.Error("skipVerify without being asked for")
	}
	for in, contains := range map[string]string{
		"mirors: []": "line 1",
		"registries:\n- host: a.b\n  ca: /none\n":                           "line 3: cannot read the authorities",
		"registries:\n- host: 'a b'\n":                                      "line 2: host",
		"registries:\n- host: a.b\n- host: a.b\n":                           "line 3: the registry a.b is listed twice",
		"registries:\n- host: a.b\n  plainHTTP: true\n  skipVerify: true\n": "line 3",
		"registries:\n- host: a.b\n  plainHTTP: yes please\n":               "line 3",
		"mirrors:\n- prefix: a.b\n":                                         "line 2: the mirror of a.b needs endpoints",
		"mirrors:\n- prefix: a.b/\n  endpoints: [c.d]":                      "line 2: prefix",
		"mirrors:\n- prefix: a.b\n  endpoints: ['http://c.d']":              "without a scheme",
		"mirrors:\n- prefix: a.b\n  endpoints: ['c.d/../x']":                "line 3",
		"- a":         "line 1",
		"a: b\n---\n": "",
		"{":           "",
	} {
		if _, err := parseRegistries([]byte(in), "/"); err == nil || !strings.Contains(err.Error(), contains) {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func FuzzRegistries(f *testing.F) {
	f.Add([]byte("mirrors:\n- prefix: docker.io\n  endpoints: [a.b]\nregistries:\n- host: a.b\n  plainHTTP: true\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseRegistries(b, t.TempDir())
		if err != nil {
			return
		}
		for _, e := range r.endpoints(Name{Registry: "docker.io", Repository: "library/a", Tag: "latest"}) {
			if !strings.HasPrefix(e.base, "https://") && !strings.HasPrefix(e.base, "http://") {
				t.Errorf("%q leads to %s", b, e.base)
			}
		}
	})
}

func BenchmarkUnpack(b *testing.B) {
	var entries []entry
	for i := range 2000 {
		entries = append(entries, file(fmt.Sprintf("d%d/f%d", i/50, i), strings.Repeat(fmt.Sprintf("line %d of a file\n", i), 500)))
	}
	layer := layerOf(b, tarOf(b, entries...))
	size, err := layer.Size()
	if err != nil {
		b.Fatal(err)
	}
	img := imageOf(b, layer)
	path := filepath.Join(b.TempDir(), "image.tar")
	ref, err := name.ParseReference("bench")
	if err != nil {
		b.Fatal(err)
	}
	if err := tarball.WriteToFile(path, ref, img); err != nil {
		b.Fatal(err)
	}
	s := openStore(b, Config{Dir: b.TempDir()})
	plain, err := layer.Uncompressed()
	if err != nil {
		b.Fatal(err)
	}
	n, err := io.Copy(io.Discard, plain)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(n)
	b.ReportMetric(float64(n)/float64(size), "compression")
	for b.Loop() {
		if _, err := s.Load(b.Context(), path, LoadOptions{}); err != nil {
			b.Fatal(err)
		}
		if err := s.Remove(parse(b, "bench")); err != nil {
			b.Fatal(err)
		}
	}
}

func TestLoadDaemon(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	n := h.push(t, "acme/app:v1", sample(t))
	s := newStore(t)
	pull(t, s, n)
	dir, err := os.MkdirTemp("", "d-") // short: socket paths are
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "docker.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	daemon := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/images/get" || r.URL.Query().Get("names") != n.Familiar() {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if err := s.Save(r.Context(), w, n); err != nil {
			t.Error(err)
		}
	})}
	served := make(chan struct{})
	go func() {
		defer close(served)
		daemon.Serve(l)
	}()
	t.Cleanup(func() {
		daemon.Close()
		<-served
	})
	other := newStore(t)
	images, err := other.LoadDaemon(t.Context(), socket, LoadOptions{}, n)
	if err != nil || len(images) != 1 || read(t, images[0], "bin/su2") != "su" {
		t.Errorf("loaded %d images, %v", len(images), err)
	}
	if _, err := other.LoadDaemon(t.Context(), socket, LoadOptions{}, parse(t, "none")); KindOf(err) != NotFound {
		t.Errorf("an image that it does not have: %v", err)
	}
	if _, err := other.LoadDaemon(t.Context(), socket+"x", LoadOptions{}, n); KindOf(err) != Unavailable {
		t.Errorf("no daemon: %v", err)
	}
}
