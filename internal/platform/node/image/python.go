// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// venv is a Python environment to build: what goes into it, and where it lies.
// The directory's name is a hash of the contents, so another requirement or
// another interpreter is another environment. Files that a requirements file
// includes (-r, -c, -e) are not part of the hash.
type venv struct {
	dir          string
	interpreter  string
	requirements []byte
	from         string // directory in which the requirements are read
	packages     []string
}

// ready is the file that says that an environment is complete.
func (v *venv) ready() string { return filepath.Join(v.dir, ".diwan-ready") }
func (v *venv) log() string   { return v.dir + ".log" }
func (v *venv) lock() string  { return v.dir + ".lock" }
func (v *venv) bin() string   { return filepath.Join(v.dir, "bin") }

// python adds an entry's Python environment to env and returns what makes it
// ready: the environment that the entry names, or one to build for its packages.
func (t *Table) python(e *Entry, env *Environment) (step, error) {
	interpreter, err := exec.LookPath(e.Python.Python)
	if err == nil {
		interpreter, err = filepath.Abs(interpreter)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot find the Python of image %s: %w; install it, or name another with python: {python: PATH}", e.Image, err)
	}
	if e.Python.builds() {
		v, err := t.venv(e, interpreter)
		if err != nil {
			return nil, err
		}
		env.addPython(v.dir, v.bin())
		env.ready = func() bool {
			_, err := os.Stat(v.ready())
			return err == nil
		}
		return func(ctx context.Context, progress func(string)) error { return t.builders.build(ctx, v, progress) }, nil
	}
	bin := filepath.Dir(interpreter)
	if root := filepath.Dir(bin); isVenv(root) {
		env.addPython(root, bin)
		return nil, nil
	}
	// A link to an interpreter outside of a venv is that interpreter, and gives it both of the usual names.
	sum := sha256.Sum256([]byte(interpreter))
	links := filepath.Join(t.cfg.Dir, "python", "link-"+hex.EncodeToString(sum[:8]))
	env.addPython("", links, bin)
	return func(context.Context, func(string)) error {
		return errors.Join(Link(interpreter, filepath.Join(links, "python")), Link(interpreter, filepath.Join(links, "python3")))
	}, nil
}

// addPython puts a Python environment before what env has on PATH.
func (e *Environment) addPython(venv string, bin ...string) {
	e.PathDirs = append(bin, e.PathDirs...)
	variables := map[string]string{"PYTHONUNBUFFERED": "1"}
	if venv != "" {
		variables["VIRTUAL_ENV"] = venv
	}
	e.Env = withDefaults(e.Env, variables)
}

// isVenv reports whether a directory is a virtual environment, by the file that makes it one to Python.
func isVenv(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, "pyvenv.cfg"))
	return err == nil && info.Mode().IsRegular()
}

// venv describes the environment to build for an entry. The interpreter's
// version is asked for once per interpreter file.
func (t *Table) venv(e *Entry, interpreter string) (*venv, error) {
	p := e.Python
	v := &venv{interpreter: interpreter, packages: p.Packages, from: t.cfg.Dir}
	var err error
	if p.Requirements != "" {
		v.from = filepath.Dir(p.Requirements)
		if v.requirements, err = os.ReadFile(p.Requirements); err != nil {
			return nil, fmt.Errorf("cannot read requirements of image %s: %w", e.Image, err)
		}
	}
	version, err := t.builders.version(v.interpreter)
	if err != nil {
		return nil, fmt.Errorf("cannot use the Python of image %s: %w", e.Image, err)
	}
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q %q", v.interpreter, version, v.requirements, v.packages)
	v.dir = filepath.Join(t.cfg.Dir, "python", hex.EncodeToString(h.Sum(nil)[:8]))
	return v, nil
}

// make builds the environment from nothing, with uv where it is installed and
// else with venv and pip. All output goes to the log and, by lines, to progress.
func (v *venv) make(ctx context.Context, progress func(string)) error {
	if err := os.RemoveAll(v.dir); err != nil {
		return fmt.Errorf("cannot clear environment: %w", err)
	}
	log, err := os.Create(v.log())
	if err != nil {
		return fmt.Errorf("cannot write log of environment: %w", err)
	}
	defer log.Close()
	requirements := v.dir + ".txt"
	text := string(v.requirements) + "\n" + strings.Join(v.packages, "\n") + "\n"
	if err := os.WriteFile(requirements, []byte(text), 0o600); err != nil {
		return fmt.Errorf("cannot write requirements: %w", err)
	}
	out := &tail{log: log, progress: progress}
	for _, command := range v.commands(requirements) {
		cmd := exec.CommandContext(ctx, command[0], command[1:]...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = v.from, out, out
		cmd.WaitDelay = 5 * time.Second
		endWithGroup(cmd)
		if err := cmd.Run(); err != nil {
			out.flush()
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("cannot build its Python environment: %s: %w; see %s:\n%s",
				filepath.Base(command[0])+" "+command[1], err, v.log(), strings.Join(out.last, "\n"))
		}
		out.flush()
	}
	return os.WriteFile(v.ready(), nil, 0o600)
}

// commands makes the environment and installs its packages, if there are any.
func (v *venv) commands(requirements string) [][]string {
	python := filepath.Join(v.bin(), "python")
	create := []string{v.interpreter, "-m", "venv", v.dir}
	install := []string{python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "-r", requirements}
	if uv, err := exec.LookPath("uv"); err == nil {
		create = []string{uv, "venv", "--seed", "--python", v.interpreter, v.dir}
		install = []string{uv, "pip", "install", "--python", python, "-r", requirements}
	}
	if len(strings.TrimSpace(string(v.requirements))) == 0 && len(v.packages) == 0 {
		return [][]string{create}
	}
	return [][]string{create, install}
}

// versionOf asks an interpreter for its version.
func versionOf(interpreter string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, interpreter, "-VV").CombinedOutput()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
		}
		return "", fmt.Errorf("cannot ask %s for its version: %w", interpreter, err)
	}
	return string(out), nil
}
