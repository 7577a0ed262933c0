// SPDX-License-Identifier: Apache-2.0

package image

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Entry maps an image to its environment. Relative host paths are relative to
// the directory of the file with the entry.
type Entry struct {
	// Image is a name such as ghcr.io/acme/train: with a tag or digest it means just
	// that one, without it means any. A name with * (any characters) or ? (one) is
	// a glob over the whole name with its tag.
	Image string `yaml:"image"`
	// Python is a Python environment: one that exists, or one that is built before the first use.
	Python *Python `yaml:"python,omitempty"`
	// Files maps absolute container paths to host paths.
	Files map[string]string `yaml:"files,omitempty"`
	// Path lists host directories that go before PATH.
	Path []string `yaml:"path,omitempty"`
	// Env are environment variables; the container's take precedence.
	Env map[string]string `yaml:"env,omitempty"`
	// Command is the image's entrypoint: the program, which is a name on PATH or a host path, and its arguments.
	Command []string `yaml:"command,omitempty"`
	// WorkingDir is where the container starts unless it says otherwise: an
	// absolute container path, or a relative host path.
	WorkingDir string `yaml:"workingDir,omitempty"`
	// Builtin names a program that Diwan carries; "diwan" is the only one.
	Builtin string `yaml:"builtin,omitempty"`
	// Runtime is in what the containers run: RuntimeProcess, the default, or
	// RuntimeImage, with which the fields above must be empty.
	Runtime string `yaml:"runtime,omitempty"`
	// Privileged allows containers to be privileged, with RuntimeImage.
	Privileged bool `yaml:"privileged,omitempty"`
}

// In what containers run.
const (
	// RuntimeProcess runs containers as processes of the machine itself.
	RuntimeProcess = "process"
	// RuntimeImage runs containers in the image, which is pulled.
	RuntimeImage = "image"
)

// maps reports whether the entry describes an environment on the machine.
func (e *Entry) maps() bool {
	return e.Python != nil || len(e.Files)+len(e.Path)+len(e.Env)+len(e.Command) > 0 || e.WorkingDir != "" || e.Builtin != ""
}

// Python describes a Python environment. With Requirements or Packages it is a
// virtual environment that is built from the interpreter and has these packages.
// Without either it is the interpreter's own, with the packages that it has.
type Python struct {
	// Requirements is the path of a requirements.txt.
	Requirements string `yaml:"requirements,omitempty"`
	// Packages are requirement specifiers, such as "numpy>=2".
	Packages []string `yaml:"packages,omitempty"`
	// Python is the interpreter: a name on PATH or a host path, such as
	// .venv/bin/python. Default python3.
	Python string `yaml:"python,omitempty"`
}

// builds reports whether there is an environment to build.
func (p *Python) builds() bool { return p.Requirements != "" || len(p.Packages) > 0 }

// validate checks what the parser of YAML cannot.
func (e *Entry) validate() error {
	var errs []error
	fail := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	if e.Image == "" || strings.ContainsAny(e.Image, " \t\r\n") {
		fail("image: want a name without spaces, got %q", e.Image)
	}
	for at, from := range e.Files {
		if !path.IsAbs(at) || path.Clean(at) == "/" {
			fail("files: want an absolute path inside the container, got %q", at)
		}
		if from == "" {
			fail("files: %s: want a path on this machine", at)
		}
	}
	if slices.Contains(e.Path, "") {
		fail("path: want directories, got an empty one")
	}
	for name := range e.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			fail("env: want variable names, got %q", name)
		}
	}
	if len(e.Command) > 0 && e.Command[0] == "" {
		fail("command: want a program, got an empty one")
	}
	if e.Builtin != "" && e.Builtin != builtinDiwan {
		fail("builtin: want %s, got %q", builtinDiwan, e.Builtin)
	}
	switch e.Runtime {
	case "", RuntimeProcess:
		if e.Privileged {
			fail("privileged: want runtime: %s with it", RuntimeImage)
		}
	case RuntimeImage:
		if e.maps() {
			fail("runtime: want no other field with %s but privileged: the environment is the image's own", RuntimeImage)
		}
	default:
		fail("runtime: want %s or %s, got %q", RuntimeImage, RuntimeProcess, e.Runtime)
	}
	if e.Python != nil && slices.Contains(e.Python.Packages, "") {
		fail("python: packages: want requirement specifiers, got an empty one")
	}
	return errors.Join(errs...)
}

// resolvePaths makes the host paths absolute.
func (e *Entry) resolvePaths(dir string) {
	abs := func(p string) string {
		if filepath.IsAbs(p) {
			return filepath.Clean(p)
		}
		return filepath.Join(dir, p)
	}
	program := func(p string) string {
		if strings.Contains(p, "/") {
			return abs(p)
		}
		return p
	}
	for at, from := range e.Files {
		e.Files[at] = abs(from)
	}
	for i, p := range e.Path {
		e.Path[i] = abs(p)
	}
	if len(e.Command) > 0 {
		e.Command[0] = program(e.Command[0])
	}
	if e.WorkingDir != "" {
		e.WorkingDir = abs(e.WorkingDir)
	}
	if e.Python == nil {
		return
	}
	if e.Python.Requirements != "" {
		e.Python.Requirements = abs(e.Python.Requirements)
	}
	if e.Python.Python == "" {
		e.Python.Python = "python3"
	}
	e.Python.Python = program(e.Python.Python)
}
