// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Stdin is the path that stands for standard input.
const Stdin = "-"

// maxFile limits the size of one file, in bytes. An API server accepts about 3 MiB per object,
// so a larger file is not a manifest.
const maxFile = 64 << 20

// Object is one object of a manifest and the place where it was written.
type Object struct {
	*unstructured.Unstructured
	Source Source
}

// Source is the place where an object was written.
type Source struct {
	// File is the path as the user gave it or as a directory's entry, or [Stdin].
	File string
	// Dir is the absolute directory of the file; for standard input, the current directory.
	Dir string
	// Document is the number of the document within the file, from 1.
	Document int
	// Line is the line where the document begins, from 1.
	Line int
}

// String names the place, such as "job.yaml, document 2 (line 14)".
func (s Source) String() string {
	file := s.File
	if file == Stdin {
		file = "standard input"
	}
	return fmt.Sprintf("%s, document %d (line %d)", file, s.Document, s.Line)
}

// NotFoundError says that a path given by the user does not exist: wrong usage, not wrong work.
type NotFoundError struct{ Path string }

// Error names the path.
func (e *NotFoundError) Error() string {
	return fmt.Sprintf("cannot read %s: no such file or directory", e.Path)
}

// Read returns the objects of the files named by paths, in order. A path is a file, a directory
// (its *.yaml, *.yml and *.json files by name, without those of sub-directories) or [Stdin], which
// is read from stdin. It returns a [*NotFoundError] for a path that does not exist.
func Read(paths []string, stdin io.Reader) ([]Object, error) {
	var objects []Object
	for _, path := range paths {
		files, err := expand(path)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			read, err := readFile(file, stdin)
			if err != nil {
				return nil, err
			}
			objects = append(objects, read...)
		}
	}
	if len(objects) == 0 {
		return nil, errors.New("cannot find any object in the given files: every document is empty")
	}
	return objects, nil
}

// expand returns the files that a path stands for.
func expand(path string) ([]string, error) {
	if path == Stdin {
		return []string{path}, nil
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &NotFoundError{Path: path}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", path, err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("cannot list %s: %w", path, err)
	}
	var files []string
	for _, entry := range entries {
		extensions := []string{".yaml", ".yml", ".json"}
		if !entry.IsDir() && slices.Contains(extensions, filepath.Ext(entry.Name())) {
			files = append(files, filepath.Join(path, entry.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("cannot find a manifest in %s: it has no *.yaml, *.yml or *.json file", path)
	}
	return files, nil
}

// readFile returns the objects of one file.
func readFile(path string, stdin io.Reader) ([]Object, error) {
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("cannot find the directory of %s: %w", path, err)
	}
	in := stdin
	if path != Stdin {
		file, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", path, err)
		}
		defer file.Close()
		in = file
	}
	var data bytes.Buffer
	if n, err := io.CopyN(&data, in, maxFile+1); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("cannot read %s: %w", path, err)
	} else if n > maxFile {
		return nil, fmt.Errorf("cannot read %s: it is larger than %d MiB, so it is not a manifest", path, maxFile>>20)
	}
	return Parse(data.Bytes(), Source{File: path, Dir: dir})
}
