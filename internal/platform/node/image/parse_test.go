// SPDX-License-Identifier: Apache-2.0

package image

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const sample = `# my images
images:
- image: ghcr.io/acme/train   # the trainer
  python: {requirements: req.txt, packages: [numpy], python: python3.12}
  files: {/opt/train: ./src}
  path: [bin]
  env: {LEVEL: 3}
  command: [./run.sh, -v]
  workingDir: /opt/train
- image: "acme/*"
  builtin: diwan
`

func TestParse(t *testing.T) {
	t.Parallel()
	got, err := Parse([]byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	want := []Entry{
		{
			Image:      "ghcr.io/acme/train",
			Python:     &Python{Requirements: "req.txt", Packages: []string{"numpy"}, Python: "python3.12"},
			Files:      map[string]string{"/opt/train": "./src"},
			Path:       []string{"bin"},
			Env:        map[string]string{"LEVEL": "3"},
			Command:    []string{"./run.sh", "-v"},
			WorkingDir: "/opt/train",
		},
		{Image: "acme/*", Builtin: "diwan"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	tests := []struct{ reason, text, want string }{
		{"unknown field at the top", "image: []", "line 1: field image not found"},
		{"unknown field of an entry", "images:\n- image: a\n  cmd: [x]", `line 3: unknown field "cmd"`},
		{"unknown field of python", "images:\n- image: a\n  python: {require: x}", `line 3: unknown field "require"`},
		{"not a list", "images: {}", "line 1"},
		{"a command that is a string", "images:\n- image: a\n  command: run", "line 3"},
		{"no image", "images:\n- command: [run]", "line 2: image:"},
		{"blank in image", "images:\n- image: a b", "line 2: image:"},
		{"relative container path", "images:\n- image: a\n  files: {opt: x}", "files:"},
		{"the root as container path", "images:\n- image: a\n  files: {/: x}", "files:"},
		{"unknown program", "images:\n- image: a\n  builtin: katib", "builtin:"},
		{"two documents", "images: []\n---\nimages: []", "several"},
		{"not YAML", "images: [", "line"},
		{"bad variable", "images:\n- image: a\n  env: {a=b: c}", "env:"},
	}
	for _, tt := range tests {
		if _, err := Parse([]byte(tt.text)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want it to say %q", tt.reason, err, tt.want)
		}
	}
	for _, text := range []string{"", "# nothing yet\n", "images:\n", "images: []\n"} {
		if got, err := Parse([]byte(text)); err != nil || len(got) != 0 {
			t.Errorf("%q: got %v, %v, want an empty table", text, got, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(sample)
	f.Add("images: [{image: a, python: {}}]")
	f.Add("a: &a {image: x}\nimages: [*a, {<<: *a, image: y}]")
	f.Fuzz(func(t *testing.T, text string) {
		entries, err := Parse([]byte(text))
		if err != nil {
			return
		}
		path := filepath.Join(t.TempDir(), "images.yaml")
		for _, e := range entries {
			if err := Map(path, e); err != nil {
				t.Fatalf("an entry that was read cannot be written: %v", err)
			}
		}
		again, err := Load(path)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		if len(again) > len(entries) {
			t.Fatalf("wrote %d entries, read %d", len(entries), len(again))
		}
	})
}

func TestMatch(t *testing.T) {
	t.Parallel()
	tests := []struct {
		entry, image string
		want         int
	}{
		{"acme/train", "acme/train", repositoryMatch},
		{"acme/train", "acme/train:v1", repositoryMatch},
		{"acme/train", "docker.io/acme/train@sha256:abc", repositoryMatch},
		{"acme/train:v1", "acme/train:v1", exactMatch},
		{"acme/train:v1", "acme/train:v1@sha256:abc", exactMatch},
		{"acme/train:v1", "acme/train:v2", noMatch},
		{"acme/train:v1", "acme/train", noMatch},
		{"python", "docker.io/library/python:3.12", repositoryMatch},
		{"docker.io/library/python:3.12", "python:3.12", exactMatch},
		{"localhost:5000/train", "localhost:5000/train", repositoryMatch},
		{"localhost:5000/train", "localhost:5000/train:v1", repositoryMatch},
		{"acme/*", "acme/a/b:v1", globMatch},
		{"acme/tr?in:*", "acme/train:v1", globMatch},
		{"acme/tr?in", "acme/train:v1", noMatch},
		{"*", "anything", globMatch},
		{"acme/train", "acme/trainer", noMatch},
	}
	for _, tt := range tests {
		if got := match(tt.entry, tt.image); got != tt.want {
			t.Errorf("entry %s, image %s: got %d, want %d", tt.entry, tt.image, got, tt.want)
		}
	}
}

func TestGlobEqualsModel(t *testing.T) {
	t.Parallel()
	var model func(p, s string) bool
	model = func(p, s string) bool {
		switch {
		case p == "":
			return s == ""
		case p[0] == '*':
			return model(p[1:], s) || s != "" && model(p, s[1:])
		default:
			return s != "" && (p[0] == '?' || p[0] == s[0]) && model(p[1:], s[1:])
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		p, s := rapid.StringMatching(`[ab*?]{0,8}`).Draw(t, "pattern"), rapid.StringMatching(`[ab]{0,10}`).Draw(t, "text")
		if got, want := globs(p, s), model(p, s); got != want {
			t.Fatalf("globs(%q, %q) = %v", p, s, got)
		}
	})
}

func TestEditKeepsTheRest(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "deep", "images.yaml")
	if err := Unmap(path, "a"); !errors.Is(err, ErrNoEntry) {
		t.Errorf("unmap in no file: got %v, want ErrNoEntry", err)
	}
	if err := Map(path, Entry{Image: "a", Command: []string{"true"}}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(sample), 0o600); err != nil {
		t.Fatal(err)
	}
	steps := []func() error{
		func() error { return Map(path, Entry{Image: "new", Command: []string{"true"}}) },
		func() error { return Map(path, Entry{Image: "acme/*", Path: []string{"/opt/bin"}}) },
		func() error { return Map(path, Entry{Image: "gone", Builtin: "diwan"}) },
		func() error { return Unmap(path, "gone") },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, comment := range []string{"# my images", "# the trainer"} {
		if !strings.Contains(string(text), comment) {
			t.Errorf("the comment %q is lost:\n%s", comment, text)
		}
	}
	entries, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Image)
	}
	if diff := cmp.Diff([]string{"ghcr.io/acme/train", "acme/*", "new"}, names); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	if err := Map(path, Entry{Image: "bad", Builtin: "x"}); err == nil {
		t.Error("an invalid entry was written")
	}
}
