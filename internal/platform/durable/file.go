// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"os"
	"path/filepath"
)

// TempPrefix begins the names of files that are not complete.
const TempPrefix = ".tmp-"

// WriteFile writes a file, of which nobody sees a part, and which is on stable storage when it returns.
func WriteFile(path string, b []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), TempPrefix)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if _, err := f.Write(b); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir makes the names in a directory durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
