// SPDX-License-Identifier: Apache-2.0

// Package testimage builds container images in tests, and serves them from a
// registry on the loopback.
package testimage

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

var quiet = log.New(io.Discard, "", 0)

const architecture = runtime.GOARCH

// File is an entry of a layer. Its kind is that of the header; without one it is a
// regular file, or a directory if the name ends with a slash.
type File struct {
	tar.Header
	Body []byte
}

// Text is a regular file that everybody may read, and run if it begins with #!.
func Text(name, body string) File {
	mode := int64(0o644)
	if strings.HasPrefix(body, "#!") {
		mode = 0o755
	}
	return File{tar.Header{Name: name, Mode: mode}, []byte(body)}
}

// Dir is a directory.
func Dir(name string, mode int64) File {
	return File{tar.Header{Name: strings.TrimSuffix(name, "/") + "/", Typeflag: tar.TypeDir, Mode: mode}, nil}
}

// Link is a symbolic link.
func Link(name, target string) File {
	return File{tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: target, Mode: 0o777}, nil}
}

// Program is a program of this machine at a path of the image. It must be static.
func Program(t testing.TB, name, from string) File {
	t.Helper()
	body, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	return File{tar.Header{Name: name, Mode: 0o755}, body}
}

// Shell is a small system without Python: BusyBox with links for some of its programs, a
// user file with root, nobody and worker (1000), and a directory for temporary files.
func Shell(t testing.TB) []File {
	t.Helper()
	files := []File{
		Dir("bin", 0o755), Dir("etc", 0o755), Dir("tmp", 0o1777), Dir("root", 0o700),
		Text("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\nworker:x:1000:1000::/home/worker:/bin/sh\n"),
		Text("etc/group", "root:x:0:\nnobody:x:65534:\nworker:x:1000:\ndata:x:2000:worker\n"),
		{tar.Header{Name: "home/worker/", Typeflag: tar.TypeDir, Mode: 0o755, Uid: 1000, Gid: 1000}, nil},
		Program(t, "bin/busybox", Busybox(t)),
	}
	for _, program := range strings.Fields("sh cat echo ls sleep id env hostname true false mount mkdir touch rm ps kill head grep test stat dd tar wget nc tty stty seq awk") {
		files = append(files, Link("bin/"+program, "busybox"))
	}
	return files
}

// Busybox is a static BusyBox of this machine. Without one the test is skipped, or
// fails where CI is set.
func Busybox(t testing.TB) string {
	t.Helper()
	for _, path := range []string{"/bin/busybox", "/usr/bin/busybox"} {
		if out, err := exec.Command(path, "true").CombinedOutput(); err == nil && len(out) == 0 {
			return path
		}
	}
	const lack = "BusyBox is missing: install it with apt-get install busybox-static"
	if os.Getenv("CI") != "" {
		t.Fatal(lack)
	}
	t.Skip(lack)
	return ""
}

// Layer is a layer of files, uncompressed in memory.
func Layer(t testing.TB, files ...File) v1.Layer {
	t.Helper()
	var buffer bytes.Buffer
	out := tar.NewWriter(&buffer)
	for _, f := range files {
		header := f.Header
		header.Size = int64(len(f.Body))
		if err := out.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Write(f.Body); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(buffer.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	return layer
}

// Image is an image of layers, lowest first.
func Image(t testing.TB, config v1.Config, layers ...v1.Layer) v1.Image {
	t.Helper()
	image, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		t.Fatal(err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Config = "linux", architecture, config
	if image, err = mutate.ConfigFile(image, file); err != nil {
		t.Fatal(err)
	}
	return image
}

// Registry is a registry on the loopback.
type Registry struct {
	// Host is its address and port.
	Host   string
	server *httptest.Server
}

// Serve starts a registry that ends with the test. around, which may be nil, handles
// requests before the registry does.
func Serve(t testing.TB, around func(http.Handler) http.Handler) *Registry {
	t.Helper()
	handler := registry.New(registry.Logger(quiet))
	if around != nil {
		handler = around(handler)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return &Registry{strings.TrimPrefix(server.URL, "http://"), server}
}

// Push puts an image into the registry, as repository:tag.
func (r *Registry) Push(t testing.TB, reference string, image v1.Image) {
	t.Helper()
	tag, err := name.ParseReference(fmt.Sprintf("%s/%s", r.Host, reference))
	if err == nil {
		err = remote.Write(tag, image)
	}
	if err != nil {
		t.Fatalf("cannot push %s: %v", reference, err)
	}
}
