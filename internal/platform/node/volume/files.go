// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
)

// file is one file of a volume's content.
type file struct {
	data  []byte
	mode  fs.FileMode
	group int // that the file is given to; 0: none
}

// content maps relative paths to files.
type content map[string]file

// add puts a file at a path. Later sources of a projected volume win.
func (c content) add(path string, data []byte, mode fs.FileMode) error {
	if !filepath.IsLocal(path) || strings.HasPrefix(path, "..") {
		return fmt.Errorf("path %q escapes the volume", path)
	}
	c[filepath.Clean(path)] = file{data: data, mode: mode}
	return nil
}

// give gives all files to a group, which may read them, as kubelet does for a
// Pod's fsGroup.
func (c content) give(group int64) {
	for path, f := range c {
		f.group, f.mode = int(group), f.mode|0o440
		c[path] = f
	}
}

// dataLink is the name that leads to the present content.
const dataLink = "..data"

// write replaces the content of dir in one step: readers see all files as they
// were or all as they are. The first path elements are links through ..data,
// which is moved to a new directory by a rename.
func (c content) write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if c.isIn(dir) {
		return nil
	}
	stamp, err := os.MkdirTemp(dir, "..v")
	if err != nil {
		return err
	}
	if err := c.fill(stamp); err != nil {
		os.RemoveAll(stamp)
		return err
	}
	next := filepath.Join(dir, "..data_tmp")
	os.Remove(next)
	if err := os.Symlink(filepath.Base(stamp), next); err != nil {
		return err
	}
	if err := os.Rename(next, filepath.Join(dir, dataLink)); err != nil {
		return err
	}
	if err := c.link(dir); err != nil {
		return err
	}
	return clearStale(dir, filepath.Base(stamp))
}

// fill writes the files.
func (c content) fill(dir string) error {
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	for path, f := range c {
		full := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(full, f.data, f.mode); err != nil {
			return err
		}
		if f.group != 0 {
			// Who may not give files away runs all containers as one user.
			if err := os.Lchown(full, -1, f.group); err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EINVAL) {
				return err
			}
		}
		if err := os.Chmod(full, f.mode); err != nil { // despite the umask
			return err
		}
	}
	return nil
}

// link makes the visible names and removes those that are no longer there.
func (c content) link(dir string) error {
	want := map[string]bool{}
	for path := range c {
		first, _, _ := strings.Cut(path, string(filepath.Separator))
		want[first] = true
	}
	for name := range want {
		err := os.Symlink(filepath.Join(dataLink, name), filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !want[e.Name()] && !strings.HasPrefix(e.Name(), "..") {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// clearStale removes earlier content: what a killed writer left, and the one
// before this.
func clearStale(dir, keep string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), "..v") && e.Name() != keep {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// isIn reports whether dir holds exactly this content already.
func (c content) isIn(dir string) bool {
	root := filepath.Join(dir, dataLink)
	if _, err := os.Stat(root); err != nil {
		return false
	}
	var have []string
	err := filepath.WalkDir(root+string(filepath.Separator), func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			rel, _ := filepath.Rel(root, path)
			have = append(have, rel)
		}
		return err
	})
	if err != nil || len(have) != len(c) {
		return false
	}
	sort.Strings(have)
	for _, path := range have {
		want, ok := c[path]
		if !ok {
			return false
		}
		info, err := os.Stat(filepath.Join(root, path))
		if err != nil || info.Mode().Perm() != want.mode.Perm() {
			return false
		}
		data, err := os.ReadFile(filepath.Join(root, path))
		if err != nil || string(data) != string(want.data) {
			return false
		}
		if _, err := os.Lstat(filepath.Join(dir, strings.SplitN(path, string(filepath.Separator), 2)[0])); err != nil {
			return false
		}
	}
	return true
}
