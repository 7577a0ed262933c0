// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"time"
)

const (
	blobsDir        = "blobs"
	repositoriesDir = "repositories"
	uploadsDir      = "uploads"
	tmpDir          = "tmp"
)

// files is the registry's directory. Paths are relative to it and have slashes.
type files struct{ root *os.Root }

func contentFile(d Digest) string { return path.Join(blobsDir, d.algorithm(), d.hex()) }

func blobLink(repo string, d Digest) string {
	return path.Join(repositoriesDir, repo, "_blobs", d.algorithm(), d.hex())
}

func manifestLink(repo string, d Digest) string {
	return path.Join(repositoriesDir, repo, "_manifests", d.algorithm(), d.hex())
}

func tagsDir(repo string) string { return path.Join(repositoriesDir, repo, "_tags") }

func tagLink(repo, tag string) string { return path.Join(tagsDir(repo), tagFile(tag)) }

func referrersDir(repo string, subject Digest) string {
	return path.Join(repositoriesDir, repo, "_referrers", subject.algorithm()+"-"+subject.hex())
}

func referrerLink(repo string, subject, d Digest) string {
	return path.Join(referrersDir(repo, subject), d.algorithm()+"-"+d.hex())
}

// mkdirAll creates a directory and those above it, on stable storage.
func (f files) mkdirAll(dir string) error {
	if info, err := f.root.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	parent := path.Dir(dir)
	if parent != "." {
		if err := f.mkdirAll(parent); err != nil {
			return err
		}
	}
	if err := f.root.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return f.sync(parent)
}

// sync brings the names in a directory to stable storage.
func (f files) sync(dir string) error {
	opened, err := f.root.Open(dir)
	if err != nil {
		return err
	}
	defer opened.Close()
	if err := opened.Sync(); err != nil {
		return fmt.Errorf("cannot sync the directory %s: %w", dir, err)
	}
	return nil
}

// stage writes data to a file under tmp, on stable storage, and returns its path.
func (f files) stage(data []byte) (string, error) {
	file := path.Join(tmpDir, rand.Text())
	opened, err := f.root.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	_, err = opened.Write(data)
	if err == nil {
		err = opened.Sync()
	}
	if err = errors.Join(err, opened.Close()); err != nil {
		f.root.Remove(file)
		return "", fmt.Errorf("cannot write %s: %w", file, err)
	}
	return file, nil
}

// write replaces a file as a whole: whoever reads it, whenever this process
// dies, finds the old data or the new.
func (f files) write(file string, data []byte) error {
	if err := f.mkdirAll(path.Dir(file)); err != nil {
		return err
	}
	staged, err := f.stage(data)
	if err != nil {
		return err
	}
	if err := f.root.Rename(staged, file); err != nil {
		f.root.Remove(staged)
		return err
	}
	return f.sync(path.Dir(file))
}

// create makes sure that an empty file exists.
func (f files) create(file string) error {
	if err := f.mkdirAll(path.Dir(file)); err != nil {
		return err
	}
	opened, err := f.root.OpenFile(file, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return opened.Close()
}

// touch sets a file's modification time to the present.
func (f files) touch(file string) error {
	now := time.Now()
	return f.root.Chtimes(file, now, now)
}

// remove deletes a file, which may be gone already.
func (f files) remove(file string) error {
	if err := f.root.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// size returns the size of a regular file in bytes.
func (f files) size(file string) (int64, error) {
	info, err := f.root.Stat(file)
	if err != nil {
		return 0, err
	}
	if !info.Mode().IsRegular() {
		return 0, fmt.Errorf("%s in the registry's directory is not a regular file", file)
	}
	return info.Size(), nil
}

// names returns what is in a directory, sorted; nothing if there is none.
func (f files) names(dir string) ([]string, error) {
	opened, err := f.root.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	names, err := opened.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("cannot list %s: %w", dir, err)
	}
	slices.Sort(names)
	return names, nil
}

// digests returns the digests under a directory that has one directory for
// each algorithm.
func (f files) digests(dir string) ([]Digest, error) {
	var all []Digest
	for algorithm := range algorithms {
		names, err := f.names(path.Join(dir, algorithm))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if d, err := ParseDigest(algorithm + ":" + name); err == nil {
				all = append(all, d)
			}
		}
	}
	slices.Sort(all)
	return all, nil
}

func visitSorted(names []string, visit func(string) error) error {
	slices.Sort(names)
	for _, name := range names {
		if err := visit(name); err != nil {
			return err
		}
	}
	return nil
}
