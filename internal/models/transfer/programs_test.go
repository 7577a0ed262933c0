// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"diwan.dev/diwan/internal/models/artifact"
	"diwan.dev/diwan/internal/models/store"
)

// programs has TestPrograms exchange models with others' programs:
//
//	go test ./internal/models/transfer -run TestPrograms -programs DIR
//
// DIR has modctl, kit, oras and ormb; those that are missing are skipped. oras is installed by
// `go install oras.land/oras/cmd/oras@latest`, the others are built from their repositories.
var programs = flag.String("programs", "", "directory of modctl, kit, oras and ormb")

// tool runs one of the programs, in a home of its own.
func tool(t *testing.T, program string) func(args ...string) string {
	t.Helper()
	path := filepath.Join(*programs, program)
	if _, err := os.Stat(path); *programs == "" || err != nil {
		t.Skipf("%s is not there: name its directory with -programs", program)
	}
	home := t.TempDir()
	return func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), path, args...)
		cmd.Dir = home
		cmd.Env = append(os.Environ(), "HOME="+home, "DOCKER_CONFIG="+home, "COSIGN_PASSWORD=secret", "TMPDIR="+home)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
		}
		return string(out)
	}
}

var sample = map[string]string{
	"ormbfile.yaml": "author: me\nformat: ONNX\n", "model/model.onnx": strings.Repeat("weights", 10_000), "model/config.json": "{}", "README.md": "hello",
}

func sampleDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range sample {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func ship(t *testing.T, dir string, n store.Name, kind artifact.Kind) {
	t.Helper()
	s := newStore(t)
	v, err := s.Save(t.Context(), dir, n, store.SaveOptions{Kind: kind})
	if err != nil {
		t.Fatal(err)
	}
	if err := Push(t.Context(), s, v, n, Options{}); err != nil {
		t.Fatal(err)
	}
}

// fetched pulls and exports.
func fetched(t *testing.T, n store.Name) string {
	t.Helper()
	s, out := newStore(t), t.TempDir()
	v, err := Pull(t.Context(), s, n, n, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Export(t.Context(), v, out, store.ExportOptions{}); err != nil {
		t.Fatal(err)
	}
	return out
}

// model is the part of the sample that every format has.
func model(dir string) string { return filepath.Join(dir, "model") }

func TestPrograms(t *testing.T) {
	t.Parallel()
	t.Run("modctl", func(t *testing.T) {
		t.Parallel()
		modctl, h, dir := tool(t, "modctl"), newHub(t), sampleDir(t)
		ship(t, dir, h.name(t, "a/m:v1"), artifact.ModelPack)
		out := t.TempDir()
		modctl("pull", "--plain-http", "--no-progress", h.host+"/a/m:v1")
		modctl("extract", "--no-progress", h.host+"/a/m:v1", "--output", out)
		same(t, dir, out)
		file := filepath.Join(t.TempDir(), "Modelfile")
		if err := os.WriteFile(file, []byte("NAME m\nMODEL model/model.onnx\nCONFIG model/config.json\nDOC README.md\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, raw := range []string{"true", "false"} {
			ref := h.host + "/b/m:raw-" + raw
			modctl("build", "--no-progress", "--raw="+raw, "-t", ref, "-f", file, dir)
			modctl("push", "--plain-http", "--no-progress", ref)
			same(t, model(dir), model(fetched(t, h.name(t, "b/m:raw-"+raw))))
		}
	})
	t.Run("kit", func(t *testing.T) {
		t.Parallel()
		kit, h, dir := tool(t, "kit"), newHub(t), sampleDir(t)
		text := "manifestVersion: 1.0.0\npackage: {name: m}\nmodel: {name: m, path: model}\ndocs: [{path: README.md}]\n"
		if err := os.WriteFile(filepath.Join(dir, "Kitfile"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, compression := range []string{"none", "gzip"} {
			kit("pack", dir, "--compression", compression, "-t", h.host+"/k/m:"+compression)
			kit("push", "--plain-http", h.host+"/k/m:"+compression)
			out := fetched(t, h.name(t, "k/m:"+compression))
			same(t, model(dir), model(out))
			if written, err := os.ReadFile(filepath.Join(out, "Kitfile")); err != nil || !strings.Contains(string(written), "README.md") {
				t.Errorf("the Kitfile is %s, %v", written, err)
			}
		}
	})
	t.Run("oras", func(t *testing.T) {
		t.Parallel()
		oras, h, dir := tool(t, "oras"), newHub(t), sampleDir(t)
		ship(t, dir, h.name(t, "a/m:v1"), artifact.ModelPack)
		manifest := oras("manifest", "fetch", "--plain-http", h.host+"/a/m:v1")
		if !strings.Contains(manifest, artifact.ArtifactType) {
			t.Error(manifest)
		}
		layout := filepath.Join(t.TempDir(), "layout")
		oras("copy", "--from-plain-http", "--to-oci-layout", h.host+"/a/m:v1", layout+":v1")
		s := newStore(t)
		v, err := s.Import(t.Context(), layout, "", h.name(t, "a/m:v1"))
		if err != nil {
			t.Fatal(err)
		}
		out := t.TempDir()
		if err := s.Export(t.Context(), v, out, store.ExportOptions{}); err != nil {
			t.Fatal(err)
		}
		same(t, dir, out)
		path := filepath.Join(t.TempDir(), "m.tar")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := s.WriteLayout(t.Context(), v, f); err != nil {
			t.Fatal(err)
		}
		oras("copy", "--from-oci-layout", "--to-plain-http", path+":v1", h.host+"/c/m:v1")
		same(t, dir, fetched(t, h.name(t, "c/m:v1")))
	})
	t.Run("ormb", func(t *testing.T) {
		t.Parallel()
		ormb, h, dir := tool(t, "ormb"), newHub(t), sampleDir(t)
		ship(t, dir, h.name(t, "a/m:v1"), artifact.ORMB)
		out := t.TempDir()
		ormb("pull", "--plain-http", h.host+"/a/m:v1")
		ormb("export", h.host+"/a/m:v1", "-d", out)
		same(t, model(dir), model(out))
		ormb("save", dir, h.host+"/b/m:v1")
		ormb("push", "--plain-http", h.host+"/b/m:v1")
		out = fetched(t, h.name(t, "b/m:v1"))
		same(t, model(dir), model(out))
		if text, err := os.ReadFile(filepath.Join(out, artifact.ORMBFile)); err != nil || !strings.Contains(string(text), "author: me") {
			t.Errorf("ormbfile.yaml is %s, %v", text, err)
		}
	})
}
