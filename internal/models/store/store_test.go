// SPDX-License-Identifier: Apache-2.0

package store

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"diwan.dev/diwan/internal/models/artifact"
)

// saverEnv makes the test binary a process that saves DIR into the store STORE, exports and removes it until
// it is killed.
const saverEnv = "DIWAN_TEST_SAVER"

func TestMain(m *testing.M) {
	if args := strings.Split(os.Getenv(saverEnv), "|"); len(args) == 2 {
		if err := saver(args[0], args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

func saver(store, dir string) error {
	for n := 0; ; n++ {
		s, err := Open(store)
		if err != nil {
			return err
		}
		name, err := ParseName(fmt.Sprintf("model:v%d", n%3))
		if err != nil {
			return err
		}
		kind := artifact.ModelPack
		if n%4 == 3 {
			kind = artifact.ORMB
		}
		if _, err := s.Save(context.Background(), dir, name, SaveOptions{Kind: kind}); err != nil {
			return err
		}
		if n%2 == 1 {
			if err := s.Remove(context.Background(), name); err != nil {
				return err
			}
		}
	}
}

func open(t testing.TB) *Store {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "models"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func parse(t testing.TB, text string) Name {
	t.Helper()
	n, err := ParseName(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// folder writes files.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// content reads all files below a folder.
func content(t testing.TB, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		found[filepath.ToSlash(name)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func equal(t testing.TB, got, want map[string]string) {
	t.Helper()
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s has %d bytes that differ from the %d wanted", name, len(got[name]), len(text))
		}
	}
	if len(got) != len(want) {
		t.Errorf("there are %d files, not %d", len(got), len(want))
	}
}

func TestSaveExport(t *testing.T) {
	t.Parallel()
	s := open(t)
	files := map[string]string{"model/weights.safetensors": strings.Repeat("w", 3<<20), "model/config.json": "{}", "README.md": "hello", "ormbfile.yaml": "author: me\nformat: Others\nmetrics:\n  test:\n  - {name: acc, value: \"0.9\"}\n"}
	dir := folder(t, files)
	for _, c := range []struct {
		kind artifact.Kind
		link bool
		want []string
	}{
		{artifact.ModelPack, false, []string{"model/weights.safetensors", "model/config.json", "README.md", "ormbfile.yaml"}},
		{artifact.ModelPack, true, []string{"model/weights.safetensors", "model/config.json", "README.md", "ormbfile.yaml"}},
		{artifact.ORMB, false, []string{"model/weights.safetensors", "model/config.json"}},
	} {
		v, err := s.Save(t.Context(), dir, parse(t, "m:"+string(c.kind)), SaveOptions{Kind: c.kind})
		if err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(t.TempDir(), "out")
		if err := s.Export(t.Context(), v, out, ExportOptions{Link: c.link}); err != nil {
			t.Fatal(err)
		}
		got, want := content(t, out), map[string]string{}
		for _, name := range c.want {
			want[name] = files[name]
		}
		if c.kind == artifact.ORMB {
			if !strings.Contains(got["ormbfile.yaml"], "author: me") || !strings.Contains(got["ormbfile.yaml"], "model/config.json") {
				t.Errorf("ormbfile.yaml is %q", got["ormbfile.yaml"])
			}
			delete(got, "ormbfile.yaml")
		}
		equal(t, got, want)
	}
}

// TestShared: files that versions have in common are kept once, and a version takes away only its own.
func TestShared(t *testing.T) {
	t.Parallel()
	s := open(t)
	dir := folder(t, map[string]string{"a.bin": "one", "b.bin": "two"})
	v1, err := s.Save(t.Context(), dir, parse(t, "m:v1"), SaveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "b.bin"), []byte("three"), 0o644); err != nil {
		t.Fatal(err)
	}
	v2, err := s.Save(t.Context(), dir, parse(t, "m:v2"), SaveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if v1.Manifest.Files[0].Digest != v2.Manifest.Files[0].Digest || v1.Manifest.Files[1].Digest == v2.Manifest.Files[1].Digest {
		t.Error("equal files are not the same blob, or different ones are")
	}
	count := func() int {
		entries, err := os.ReadDir(s.path("blobs"))
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	if n := count(); n != 3+2*2 {
		t.Errorf("there are %d blobs, not 3 files, 2 manifests and 2 configurations", n)
	}
	if err := s.Remove(t.Context(), v1.Name); err != nil {
		t.Fatal(err)
	}
	if n := count(); n != 2+2 {
		t.Errorf("after removing v1 there are %d blobs, not 4", n)
	}
	out := t.TempDir()
	if err := s.Export(t.Context(), v2, out, ExportOptions{}); err != nil {
		t.Fatal(err)
	}
	equal(t, content(t, out), map[string]string{"a.bin": "one", "b.bin": "three"})
}

// TestSeen: a file that was not touched is not read again, and one that was touched is.
func TestSeen(t *testing.T) {
	t.Parallel()
	s := open(t)
	dir := folder(t, map[string]string{"a.bin": "one"})
	path := filepath.Join(dir, "a.bin")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	known := s.readSeen()
	known.add(info, "sha256:recent", time.Now()) // just written: not to be trusted
	known.add(info, "sha256:settled", time.Now().Add(time.Hour))
	if err := s.writeSeen(known); err != nil {
		t.Fatal(err)
	}
	if d, ok := s.readSeen().find(info); !ok || d != "sha256:settled" {
		t.Errorf("found %q, %v", d, ok)
	}
	// The same size and time, other content: only ctime tells.
	if err := os.WriteFile(path, []byte("two"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	changed, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if d, ok := s.readSeen().find(changed); ok {
		t.Errorf("a changed file is taken for %s", d)
	}
}

func TestRefusedSources(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, want string
		prepare    func(dir string) error
	}{
		{"nothing", "has no files", func(dir string) error { return nil }},
		{"a pipe", "neither a file nor a folder", func(dir string) error { return syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600) }},
		{"a link to a folder", "link to a folder", func(dir string) error { return os.Symlink("/", filepath.Join(dir, "link")) }},
		{"a dangling link", "no such file", func(dir string) error { return os.Symlink("nowhere", filepath.Join(dir, "link")) }},
		{"a bad ormbfile", "ormbfile.yaml", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "ormbfile.yaml"), []byte("format: ["), 0o600)
		}},
	} {
		dir := t.TempDir()
		if err := c.prepare(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := open(t).Save(t.Context(), dir, parse(t, "m:v1"), SaveOptions{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// put brings a hostile model into the store: a manifest with one layer of a media type.
func put(t testing.TB, s *Store, config, layer string, blobs ...[]byte) *Version {
	t.Helper()
	u, err := s.Use(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	m := ocispec.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, Config: ocispec.Descriptor{MediaType: config, Digest: digest.FromString("{}"), Size: 2}}
	for _, b := range append(blobs, []byte("{}")) {
		if _, err := u.Put(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range blobs {
		m.Layers = append(m.Layers, ocispec.Descriptor{MediaType: layer, Digest: digest.FromBytes(b), Size: int64(len(b))})
	}
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	d, err := u.Put(t.Context(), raw)
	if err != nil {
		t.Fatal(err)
	}
	v, err := u.Name(t.Context(), parse(t, "hostile:v1"), d)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func archive(t testing.TB, headers ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(w, zeros{}, h.Size); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestHostileArchives: nothing leads out of the folder, nothing appears of what is refused, and bombs end.
func TestHostileArchives(t *testing.T) {
	t.Parallel()
	const kit, kitLayer = "application/vnd.kitops.modelkit.config.v1+json", "application/vnd.kitops.modelkit.model.v1.tar"
	const packed = "application/vnd.cncf.model.weight.v1.tar+zstd"
	file := func(name string, size int64) tar.Header {
		return tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644}
	}
	var bomb bytes.Buffer
	z, err := zstd.NewWriter(&bomb, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(z)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "big", Size: 64 << 20, Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(w, zeros{}, 64<<20); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, config, layer, want string
		blobs                     [][]byte
	}{
		{"parent", kit, kitLayer, "leads out", [][]byte{archive(t, file("../evil", 1))}},
		{"deep parent", kit, kitLayer, "leads out", [][]byte{archive(t, file("a/../../evil", 1))}},
		{"absolute", kit, kitLayer, "leads out", [][]byte{archive(t, file("/evil", 1))}},
		{"backslash", kit, kitLayer, "should not have", [][]byte{archive(t, file(`..\evil`, 1))}},
		{"control", kit, kitLayer, "should not have", [][]byte{archive(t, file("a\x1b[2J", 1))}},
		{"staging", kit, kitLayer, "Diwan's own", [][]byte{archive(t, file(stagingDir+"/x", 1))}},
		{"link", kit, kitLayer, "refused", [][]byte{archive(t, tar.Header{Typeflag: tar.TypeSymlink, Name: "l", Linkname: "/etc"}, file("l/evil", 1))}},
		{"hard link", kit, kitLayer, "refused", [][]byte{archive(t, tar.Header{Typeflag: tar.TypeLink, Name: "l", Linkname: "/etc/passwd"})}},
		{"device", kit, kitLayer, "refused", [][]byte{archive(t, tar.Header{Typeflag: tar.TypeChar, Name: "d"})}},
		{"twice", kit, kitLayer, "twice", [][]byte{archive(t, file("a", 1), file("a", 2))}},
		{"in two layers", kit, kitLayer, "twice", [][]byte{archive(t, file("a", 1)), archive(t, file("a", 2))}},
		{"file and folder", kit, kitLayer, "a file and a folder", [][]byte{archive(t, file("a", 1), file("a/b", 2))}},
		{"cut", kit, kitLayer, "cannot unpack", [][]byte{archive(t, file("a", 1<<20))[:100_000]}},
		{"not gzip", kit, kitLayer + "+gzip", "not compressed", [][]byte{[]byte("nothing")}},
		{"not tar", kit, kitLayer, "cannot unpack", [][]byte{bytes.Repeat([]byte("x"), 4096)}},
		{"bomb", "application/vnd.cncf.model.config.v1+json", packed, "--max-size", [][]byte{bomb.Bytes()}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			v := put(t, s, c.config, c.layer, c.blobs...)
			parent := t.TempDir()
			out := filepath.Join(parent, "out")
			err := s.Export(t.Context(), v, out, ExportOptions{MaxBytes: 16 << 20})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, not about %q", err, c.want)
			}
			for name := range content(t, parent) {
				t.Errorf("%s was written", name)
			}
		})
	}
}

// TestLinksInTarget: links in the folder to which a model is exported do not lead it out of there.
func TestLinksInTarget(t *testing.T) {
	t.Parallel()
	s := open(t)
	v, err := s.Save(t.Context(), folder(t, map[string]string{"sub/a.bin": "one"}), parse(t, "m:v1"), SaveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out, elsewhere := t.TempDir(), t.TempDir()
	if err := os.Symlink(elsewhere, filepath.Join(out, "sub")); err != nil {
		t.Fatal(err)
	}
	if err := s.Export(t.Context(), v, out, ExportOptions{}); err == nil {
		t.Error("it was exported by way of a link")
	}
	if found := content(t, elsewhere); len(found) > 0 {
		t.Errorf("written elsewhere: %v", found)
	}
}

func TestReceive(t *testing.T) {
	t.Parallel()
	s := open(t)
	u, err := s.Use(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	text := strings.Repeat("blob", 1000)
	d := ocispec.Descriptor{Digest: digest.FromString(text), Size: int64(len(text))}
	broken := errors.New("broken")
	err = u.Receive(t.Context(), d, func(w io.Writer, offset int64) error {
		if _, err := io.WriteString(w, text[:1500]); err != nil {
			return err
		}
		return broken
	})
	if !errors.Is(err, broken) || u.Has(d) {
		t.Fatalf("an interrupted blob is there, or the error is %v", err)
	}
	if err := u.Receive(t.Context(), d, func(w io.Writer, offset int64) error {
		if offset != 1500 {
			t.Errorf("it goes on at %d", offset)
		}
		_, err := io.WriteString(w, text[offset:])
		return err
	}); err != nil || !u.Has(d) {
		t.Fatal(err)
	}
	wrong := ocispec.Descriptor{Digest: digest.FromString("other"), Size: 5}
	for range 2 { // what was wrong is not resumed
		err := u.Receive(t.Context(), wrong, func(w io.Writer, offset int64) error {
			if offset != 0 {
				t.Errorf("wrong content was kept up to byte %d", offset)
			}
			_, err := io.WriteString(w, "wrong")
			return err
		})
		if !errors.Is(err, ErrDigest) || u.Has(wrong) {
			t.Fatalf("wrong content: %v", err)
		}
	}
	if err := u.Receive(t.Context(), wrong, func(w io.Writer, _ int64) error { _, err := io.Copy(w, zeros{}); return err }); !errors.Is(err, ErrDigest) {
		t.Errorf("endless content: %v", err)
	}
}

// TestPruneInUse: nothing is removed while somebody relies on it.
func TestPruneInUse(t *testing.T) {
	t.Parallel()
	s := open(t)
	u, err := s.Use(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d, err := u.Put(t.Context(), []byte("blob"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Prune(t.Context(), PruneOptions{}); !errors.Is(err, ErrInUse) {
		t.Errorf("pruning: %v", err)
	}
	if !u.Has(ocispec.Descriptor{Digest: d, Size: 4}) {
		t.Error("the blob is gone")
	}
	u.Close()
	if p, err := s.Prune(t.Context(), PruneOptions{}); err != nil || p.Blobs != 1 || p.Bytes != 4 {
		t.Errorf("pruned %+v, %v", p, err)
	}
}

func TestLayout(t *testing.T) {
	t.Parallel()
	s, other := open(t), open(t)
	files := map[string]string{"a.bin": strings.Repeat("one", 1000), "b/c.json": "{}"}
	v, err := s.Save(t.Context(), folder(t, files), parse(t, "m:v1"), SaveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "m.tar")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := s.WriteLayout(t.Context(), v, f); err != nil {
		t.Fatal(err)
	}
	got, err := other.Import(t.Context(), path, "", parse(t, "m:v1"))
	if err != nil {
		t.Fatal(err)
	}
	if got.Manifest.Digest != v.Manifest.Digest {
		t.Errorf("imported %s, exported %s", got.Manifest.Digest, v.Manifest.Digest)
	}
	out := t.TempDir()
	if err := other.Export(t.Context(), got, out, ExportOptions{}); err != nil {
		t.Fatal(err)
	}
	equal(t, content(t, out), files)
	// A layout whose blob was changed.
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b = bytes.Replace(b, []byte("oneone"), []byte("oneTwo"), 1)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t).Import(t.Context(), path, "", parse(t, "m:v1")); !errors.Is(err, ErrDigest) {
		t.Errorf("a changed layout: %v", err)
	}
}

func TestParseName(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"mnist", "mnist:latest"}, {"mnist:v1", "mnist:v1"}, {"team/mnist:v1", "team/mnist:v1"},
		{"ghcr.io/acme/m:v1", "ghcr.io/acme/m:v1"}, {"localhost:5000/m", "localhost:5000/m:latest"},
		{"localhost/m:v1", "m:v1"}, {"m:v1@sha256:" + strings.Repeat("a", 64), "m@sha256:" + strings.Repeat("a", 64)},
	} {
		n, err := ParseName(c.text)
		if err != nil || n.String() != c.want {
			t.Errorf("%s is %s, %v", c.text, n, err)
		}
		if again, err := ParseName(n.String()); err != nil || again != n {
			t.Errorf("%s is %+v again, not %+v: %v", n, again, n, err)
		}
	}
	for _, bad := range []string{"", "M", "m:", "../m", "m@sha256:12", "m:v 1", "/m", "ghcr.io/"} {
		if n, err := ParseName(bad); err == nil {
			t.Errorf("%q is %+v", bad, n)
		}
	}
}

// TestKilled: at whatever moment a process is killed that saves and removes, what is there is whole, the next
// one goes on, and nothing is left over after pruning.
func TestKilled(t *testing.T) {
	t.Parallel()
	files := map[string]string{"ormbfile.yaml": "format: Others\n"}
	for i := range 10 {
		files[fmt.Sprintf("model/w%d.bin", i)] = strings.Repeat(fmt.Sprint(i), 50_000+rand.IntN(100_000))
	}
	dir, store := folder(t, files), filepath.Join(t.TempDir(), "models")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), saverEnv+"="+store+"|"+dir)
		cmd.Stderr = t.Output()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(20+rand.IntN(200)) * time.Millisecond) // a random moment, not a wait for something
		cmd.Process.Kill()
		if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Fatalf("it ended by itself: %v", err)
		}
		s, err := Open(store)
		if err != nil {
			t.Fatal(err)
		}
		whole(t, s)
	}
	s, err := Open(store)
	if err != nil {
		t.Fatal(err)
	}
	versions, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range versions {
		if err := s.Remove(t.Context(), v.Name); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Prune(t.Context(), PruneOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"blobs", "names", "work", "uploads"} {
		entries, err := os.ReadDir(s.path(d))
		if err != nil || len(entries) > 0 {
			t.Errorf("%s has %d entries left, %v", d, len(entries), err)
		}
	}
}

// whole checks that every version has its blobs, and every blob its digest.
func whole(t testing.TB, s *Store) {
	t.Helper()
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
				t.Fatalf("the blob %s of %s is %s, %v", d.Digest, v.Name, got, err)
			}
		}
	}
}

// TestORMBBytes: ormb's artifact is what ormb reads: one tar.gz of model/ in regular files.
func TestORMBBytes(t *testing.T) {
	t.Parallel()
	s := open(t)
	v, err := s.Save(t.Context(), folder(t, map[string]string{"ormbfile.yaml": "format: ONNX\n", "model/m.onnx": "x", "other.txt": "no"}), parse(t, "m:v1"), SaveOptions{Kind: artifact.ORMB})
	if err != nil {
		t.Fatal(err)
	}
	f, err := s.Open(v.Manifest.Files[0].Descriptor)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	r := tar.NewReader(unzipped)
	h, err := r.Next()
	if err != nil || h.Name != "model/m.onnx" || h.Typeflag != tar.TypeReg {
		t.Errorf("the first entry is %+v, %v", h, err)
	}
	if _, err := r.Next(); err != io.EOF {
		t.Errorf("then %v", err)
	}
	if _, err := s.Save(t.Context(), folder(t, map[string]string{"ormbfile.yaml": "format: ONNX\n", "model/m.pb": "x"}), parse(t, "m:v2"), SaveOptions{Kind: artifact.ORMB}); err == nil || !strings.Contains(err.Error(), "*.onnx") {
		t.Errorf("a folder that is not of its format: %v", err)
	}
}
