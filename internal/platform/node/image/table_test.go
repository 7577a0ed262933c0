// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/zip"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func openTable(t *testing.T, text string) (*Table, string) {
	t.Helper()
	home := t.TempDir()
	cfg := Default(home)
	write(t, cfg.Files[0], text)
	table, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return table, home
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	table, home := openTable(t, `
images:
- {image: "acme/*", command: [glob]}
- {image: acme/train, command: [any-tag]}
- {image: "acme/train:v1", command: [./exact, arg], path: [bin], env: {A: b}, files: {/opt/x: x}, workingDir: work}
- {image: acme/tools, path: [/opt/tools]}
`)
	tests := []struct {
		reason, image string
		want          Environment
	}{
		{"the exact name wins", "acme/train:v1", Environment{
			PathDirs: []string{home + "/bin"}, Env: map[string]string{"A": "b"}, Mounts: map[string]string{"/opt/x": home + "/x"},
			Command: []string{home + "/exact", "arg"}, WorkingDir: home + "/work",
		}},
		{"then the name without a tag", "acme/train:v2", Environment{Command: []string{"any-tag"}}},
		{"then a glob", "acme/other", Environment{Command: []string{"glob"}}},
		{"no entry means the host", "busybox", Environment{}},
	}
	for _, tt := range tests {
		got, err := table.Resolve(tt.image, true, false)
		if err != nil {
			t.Fatal(err)
		}
		if got.Image != tt.image || got.ID == "" {
			t.Errorf("%s: image %q, id %q", tt.reason, got.Image, got.ID)
		}
		got.Image, got.ID, got.check, got.ready, got.prepare = "", "", nil, nil, nil
		if diff := cmp.Diff(tt.want, *got, cmp.AllowUnexported(Environment{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
		}
	}
	for _, name := range []string{"busybox", "acme/tools"} {
		var unmapped *UnmappedError
		if _, err := table.Resolve(name, false, false); !errors.As(err, &unmapped) || !strings.Contains(err.Error(), "diwan images map "+name) {
			t.Errorf("%s without a command: got %v, want the way to map it", name, err)
		}
	}
	if _, err := table.Resolve("acme/tools", false, true); err != nil {
		t.Errorf("arguments that are a program, on an image without a command, give %v", err)
	}
	if _, err := table.Resolve("busybox", false, true); err == nil {
		t.Error("arguments run on an image of which nobody knows whether it has a command")
	}
}

// TestMachine wants what a file says of an image first, then built-in images, then
// the file's word on all other images.
func TestMachine(t *testing.T) {
	t.Parallel()
	const all = "{image: '*', runtime: process}"
	for _, tt := range []struct {
		reason, table, image, entry, runtime string
	}{
		{"no entry", "", "acme/train", "", ""},
		{"all others", all, "acme/train", "*", RuntimeProcess},
		{"the machine", "", Host, Host, RuntimeProcess},
		{"the machine, with a tag", "", Host + ":v1", Host, RuntimeProcess},
		{"built-in before all others", "{image: '*', runtime: image}", Host, Host, RuntimeProcess},
		{"built-in with a tag", "{image: '*', runtime: image}", "example.com/torch:1", "example.com/torch:1", RuntimeProcess},
		{"built-in with another tag", "", "example.com/torch:2", "", ""},
		{"built-in by a glob", all, "acme/deliver:v1", "acme/deliver", ""},
		{"a name before built-in", "{image: 'example.com/torch:1', runtime: image}", "example.com/torch:1", "example.com/torch:1", RuntimeImage},
		{"a glob before built-in", "{image: 'example.com/*', runtime: image}", "example.com/torch:1", "example.com/*", RuntimeImage},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			cfg := Default(t.TempDir(), Entry{Image: "example.com/torch:1", Runtime: RuntimeProcess}, BuiltIn("*/deliver", "deliver"))
			write(t, cfg.Files[0], "images: ["+tt.table+"]")
			table, err := Open(cfg)
			if err != nil {
				t.Fatal(err)
			}
			got := table.Entry(tt.image)
			if got == nil {
				got = &Entry{}
			}
			if got.Image != tt.entry || got.Runtime != tt.runtime {
				t.Errorf("the entry is %q, runtime %q; want %q, %q", got.Image, got.Runtime, tt.entry, tt.runtime)
			}
		})
	}
	table, _ := openTable(t, "images: ["+all+"]")
	if _, err := table.Resolve(Host, false, true); err != nil {
		t.Errorf("arguments with a program on %s give %v", Host, err)
	}
	var unmapped *UnmappedError
	if _, err := table.Resolve("busybox", false, true); !errors.As(err, &unmapped) {
		t.Errorf("arguments of an image that may have an entrypoint give %v", err)
	}
}

func TestBuiltin(t *testing.T) {
	t.Parallel()
	table, _ := openTable(t, "")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		env, err := table.Resolve("diwan.dev/diwan:v1", false, false)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{exe}, env.Command); diff != "" {
			t.Error(diff)
		}
		if err := env.Prepare(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if at, err := os.Readlink(filepath.Join(env.PathDirs[0], "diwan")); err != nil || at != exe {
			t.Errorf("diwan on PATH is %q, %v, want %s", at, err, exe)
		}
	}
}

func TestTableFollowsItsFiles(t *testing.T) {
	t.Parallel()
	table, home := openTable(t, "images: [{image: a, command: [old]}]")
	path := filepath.Join(home, "images.yaml")
	command := func() []string {
		env, err := table.Resolve("a", true, false)
		if err != nil {
			t.Fatal(err)
		}
		return env.Command
	}
	steps := []struct {
		reason, text string
		want         []string
	}{
		{"changed", "images: [{image: a, command: [newer]}]", []string{"newer"}},
		{"broken: the last good one stays", "images: [", []string{"newer"}},
		{"mended", "images: [{image: a, command: [mended]}]", []string{"mended"}},
	}
	for _, s := range steps {
		write(t, path, s.text)
		if diff := cmp.Diff(s.want, command()); diff != "" {
			t.Errorf("%s:\n%s", s.reason, diff)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if got := command(); got != nil {
		t.Errorf("removed: got %v", got)
	}
	if _, err := Open(Config{Files: []string{path}}); err != nil {
		t.Errorf("a file that does not exist: %v", err)
	}
	write(t, path, "images: [")
	if _, err := Open(Config{Files: []string{path}}); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a broken file: got %v, want an error that names it", err)
	}
}

func TestMissingFilesOfAnEntry(t *testing.T) {
	t.Parallel()
	table, home := openTable(t, "images: [{image: a, files: {/opt/a: missing}}]")
	env, err := table.Resolve("a", true, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := env.Prepare(t.Context(), nil); err == nil || !strings.Contains(err.Error(), home+"/missing") {
		t.Errorf("got %v, want an error that names the path", err)
	}
}

func needPython(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("this test needs python3")
	}
	if _, err := exec.LookPath("uv"); err == nil {
		return
	}
	if out, err := exec.Command("python3", "-m", "ensurepip", "--version").CombinedOutput(); err != nil {
		t.Skipf("this python3 cannot make environments: %s", out)
	}
}

// wheel writes a package with one module that says hello.
func wheel(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "greet-1.0-py3-none-any.whl")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z := zip.NewWriter(f)
	for name, text := range map[string]string{
		"greet.py":                     "print('hello')\n",
		"greet-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: greet\nVersion: 1.0\n",
		"greet-1.0.dist-info/WHEEL":    "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		"greet-1.0.dist-info/RECORD":   "greet.py,,\ngreet-1.0.dist-info/METADATA,,\ngreet-1.0.dist-info/WHEEL,,\ngreet-1.0.dist-info/RECORD,,\n",
	} {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(w, text)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPythonEnvironmentIsBuiltOnce(t *testing.T) {
	t.Parallel()
	needPython(t)
	table, home := openTable(t, "images: [{image: a, python: {requirements: req.txt}, env: {PYTHONUNBUFFERED: '0'}}]")
	wheel(t, home)
	write(t, filepath.Join(home, "req.txt"), "./greet-1.0-py3-none-any.whl\n")
	// A second table stands for a second process.
	second, err := Open(Default(home))
	if err != nil {
		t.Fatal(err)
	}
	var builds atomic.Int32
	var wg sync.WaitGroup
	for _, table := range []*Table{table, table, second} {
		wg.Go(func() {
			env, err := table.Resolve("a", true, false)
			if err != nil {
				t.Error(err)
				return
			}
			err = env.Prepare(t.Context(), func(line string) {
				if strings.HasPrefix(line, "Building") {
					builds.Add(1)
				}
			})
			if err != nil {
				t.Error(err)
				return
			}
			out, err := exec.Command(filepath.Join(env.PathDirs[0], "python"), "-m", "greet").CombinedOutput()
			if err != nil || string(out) != "hello\n" {
				t.Errorf("got %q, %v", out, err)
			}
			if env.Env["PYTHONUNBUFFERED"] != "0" || env.Env["VIRTUAL_ENV"] == "" {
				t.Errorf("env %v", env.Env)
			}
		})
	}
	wg.Wait()
	if n := builds.Load(); n != 1 {
		t.Errorf("built %d times, want once", n)
	}
}

func TestPythonEnvironmentThatCannotBeBuilt(t *testing.T) {
	t.Parallel()
	needPython(t)
	table, _ := openTable(t, "images: [{image: a, python: {packages: [./missing-1.0-py3-none-any.whl]}}]")
	env, err := table.Resolve("a", true, false)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"missing-1.0", "retrying in"} {
		start := time.Now()
		if err := env.Prepare(t.Context(), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("attempt %d after %s: got %v, want it to say %q", i, time.Since(start), err, want)
		}
	}
}

func TestPythonThatDoesNotExist(t *testing.T) {
	t.Parallel()
	table, _ := openTable(t, "images: [{image: a, python: {python: python9.9}}, {image: b, python: {requirements: none.txt}}]")
	for image, want := range map[string]string{"a": "python9.9", "b": "none.txt"} {
		if _, err := table.Resolve(image, true, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("image %s: got %v, want it to name %s", image, err, want)
		}
	}
}

// TestPythonThatExists finds the packages of an environment that an entry names and gives nothing to install into.
func TestPythonThatExists(t *testing.T) {
	t.Parallel()
	needPython(t)
	own := filepath.Join(t.TempDir(), ".venv")
	if out, err := exec.Command("python3", "-m", "venv", "--without-pip", own).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	packages, err := filepath.Glob(filepath.Join(own, "lib", "python3*", "site-packages"))
	if err != nil || len(packages) != 1 {
		t.Fatal(packages, err)
	}
	write(t, filepath.Join(packages[0], "greet.py"), "print('hello')\n")
	// As the interpreter of a distribution or of conda: no virtual environment, and only one of the usual names.
	plain := filepath.Join(t.TempDir(), "python3.99")
	if err := os.WriteFile(plain, []byte("#!/bin/sh\necho plain\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	table, _ := openTable(t, fmt.Sprintf("images: [{image: venv, python: {python: %s/bin/python}}, {image: plain, python: {python: %s}}]", own, plain))
	for image, want := range map[string]string{"venv": "hello\n", "plain": "plain\n"} {
		env, err := table.Resolve(image, true, false)
		if err != nil {
			t.Fatal(err)
		}
		if err := env.Prepare(t.Context(), func(line string) { t.Errorf("image %s: %s", image, line) }); err != nil {
			t.Fatal(err)
		}
		for _, program := range []string{"python", "python3"} {
			out, err := exec.Command(filepath.Join(env.PathDirs[0], program), "-m", "greet").CombinedOutput()
			if err != nil || string(out) != want {
				t.Errorf("image %s: %s printed %q, %v", image, program, out, err)
			}
		}
		if venv := env.Env["VIRTUAL_ENV"]; (image == "venv") != (venv == own) {
			t.Errorf("image %s: VIRTUAL_ENV=%q", image, venv)
		}
	}
}
