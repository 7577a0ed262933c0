// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// maxFile is the size of the largest profile that is read, in bytes. Docker's default
// profile has 18 kB.
const maxFile = 1 << 20

// Load reads the profile of a file below dir, the directory for the profiles that Pods
// may name. The name is a path relative to it and cannot lead out of it.
func Load(dir, name string) (*Profile, error) {
	p, err := load(dir, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("cannot find the seccomp profile %s: put it into %s", name, dir)
	case err != nil:
		return nil, fmt.Errorf("cannot use the seccomp profile %s: %w", filepath.Join(dir, name), err)
	}
	return p, nil
}

func load(dir, name string) (*Profile, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe would wait for a writer
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, errors.New("it is no regular file")
	}
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("it is larger than %d bytes: remove what is not needed", maxFile)
	}
	return Parse(text)
}
