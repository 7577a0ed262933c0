// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"diwan.dev/diwan/internal/platform/node/container"
)

// defaultPath is the PATH of a container whose environment has none.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Find finds the file of a program as exec would, so that a missing program is
// a clear error and not a shell's message in the container's output. env is the
// container's, as NAME=VALUE; relative paths are below dir. The error is a
// *container.StartError.
func Find(program, dir string, env []string) (string, error) {
	switch {
	case program == "":
		return "", notFound(program, errors.New("the name is empty"))
	case strings.HasPrefix(program, "-"):
		return "", notFound(program, errors.New("a program's name cannot start with a dash"))
	case strings.Contains(program, "/"):
		if !filepath.IsAbs(program) {
			program = filepath.Join(dir, program)
		}
		return program, executable(program)
	}
	var denied error
	for _, d := range filepath.SplitList(variable(env, "PATH", defaultPath)) {
		if !filepath.IsAbs(d) {
			d = filepath.Join(dir, d)
		}
		path := filepath.Join(d, program)
		err := executable(path)
		if err == nil {
			return path, nil
		}
		if !errors.Is(err, fs.ErrNotExist) && denied == nil {
			denied = err
		}
	}
	if denied != nil {
		return "", denied
	}
	return "", notFound(program, errors.New("executable file not found in $PATH"))
}

func executable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return notFound(path, err)
	}
	if info.IsDir() || info.Mode()&0o111 == 0 {
		return &container.StartError{
			Reason: "ContainerCannotRun", Code: 126,
			Err: fmt.Errorf("cannot run %q: %w: the file is not executable; make it so with chmod +x, or name its interpreter in the command", path, fs.ErrPermission),
		}
	}
	return nil
}

func notFound(program string, cause error) error {
	return &container.StartError{
		Reason: "ContainerCannotRun", Code: 127,
		Err: fmt.Errorf("cannot find the program %q: %w; containers run on this machine, so install it here, or map the container's image to an environment that has it: diwan images map", program, cause),
	}
}

// variable returns the last value of a variable in env.
func variable(env []string, name, missing string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if n, v, ok := strings.Cut(env[i], "="); ok && n == name {
			return v
		}
	}
	return missing
}
