// SPDX-License-Identifier: Apache-2.0

package imagestore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"diwan.dev/diwan/internal/platform/durable"
	"diwan.dev/diwan/internal/platform/imagestore/unpack"
)

// ErrNotFound is the cause of errors about images that the store does not have.
var ErrNotFound = errors.New("the store does not have this image")

// Config configures a store.
type Config struct {
	// Dir is the store's directory. It is made if it is missing, and nobody else may enter it.
	Dir string
	// KeepBlobs keeps the compressed blobs of layers, with which an image can be pushed under its
	// digest. They need about a third of an image's size.
	KeepBlobs bool
	// Layers is how many layers of a pull are fetched and unpacked at a time; 0 is 3.
	Layers int
	// Idle is how long a registry may send nothing before the request is repeated; 0 is a minute.
	Idle time.Duration
	// Transport is used in place of the standard one for registries without settings of their own.
	Transport http.RoundTripper

	// backoff is the wait before the n-th repetition of a request; for tests.
	backoff func(n int) time.Duration
}

// Store is a store of images. Its methods may be called concurrently, by several processes.
type Store struct {
	dir    string
	config Config
	format format
	sync   syncer
}

// format is how layers are marked, for the life of a store: overlayfs must be mounted accordingly.
type format struct {
	Version int `json:"version"`
	// UserXattr: opaque directories are marked by user.overlay.opaque.
	UserXattr bool `json:"userXattr"`
	// Owners: files have the owners that images give them.
	Owners bool `json:"owners"`
	// Devices: devices can be made.
	Devices bool `json:"devices"`
}

const (
	formatVersion = 1
	// partialAge is how long a partial blob waits to be resumed.
	partialAge = 24 * time.Hour
	lockFile   = "lock"
)

// Open opens the store in a directory, makes it if it does not exist, and removes what killed
// processes left behind.
func Open(c Config) (*Store, error) {
	if c.Layers <= 0 {
		c.Layers = 3
	}
	if c.Idle <= 0 {
		c.Idle = time.Minute
	}
	if c.backoff == nil {
		c.backoff = backoff
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("cannot open the image store: %w", err)
	}
	s := &Store{dir: dir, config: c}
	if err := s.open(); err != nil {
		return nil, fmt.Errorf("cannot open the image store %s: %w", dir, err)
	}
	return s, nil
}

func (s *Store) open() error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	if err := os.Chmod(s.dir, 0o700); err != nil {
		return err
	}
	for _, d := range []string{"images", "names", "blobs", "layers", "work", "leases", "trash"} {
		if err := os.Mkdir(s.path(d), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	err := s.locked(context.Background(), func() error {
		err := readJSON(s.path("store.json"), &s.format)
		if errors.Is(err, fs.ErrNotExist) {
			if s.format, err = probe(s.path("trash")); err != nil {
				return err
			}
			return writeJSON(s.path("store.json"), s.format)
		}
		if err != nil {
			return err
		}
		if s.format.Version != formatVersion {
			return fmt.Errorf("it has the format %d, and this version of Diwan knows %d", s.format.Version, formatVersion)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.sweepGarbage(partialAge)
}

// Dir is the store's directory.
func (s *Store) Dir() string { return s.dir }

// UserXattr reports whether overlayfs must be mounted with userxattr to understand the layers.
func (s *Store) UserXattr() bool { return s.format.UserXattr }

// KeepsOwners reports whether files in layers have the owners that images give them. Else all belong
// to the user of the store.
func (s *Store) KeepsOwners() bool { return s.format.Owners }

func (s *Store) path(elem ...string) string {
	return filepath.Join(append([]string{s.dir}, elem...)...)
}

// digestHex is the file name for a digest that was verified to be one.
func digestHex(digest string) string { return strings.TrimPrefix(digest, "sha256:") }

func sha256Hex(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func digestOf(b []byte) string { return "sha256:" + sha256Hex(b) }

// locked runs f while no other process or goroutine changes what refers to what. f is short.
func (s *Store) locked(ctx context.Context, f func() error) error {
	l, err := durable.Lock(ctx, s.path(lockFile))
	if err != nil {
		return fmt.Errorf("cannot lock the image store: %w", err)
	}
	defer l.Close()
	return f()
}

// discard moves a file or directory to the trash, from where emptyTrash removes it.
func (s *Store) discard(path string) error {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	dir, err := os.MkdirTemp(s.path("trash"), "")
	if err != nil {
		return err
	}
	err = os.Rename(path, filepath.Join(dir, "x"))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return err
}

// emptyTrash removes what was discarded. Several processes may do so at once.
func (s *Store) emptyTrash() error {
	entries, err := os.ReadDir(s.path("trash"))
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		errs = append(errs, unpack.RemoveAll(s.path("trash", e.Name())))
	}
	return errors.Join(errs...)
}

// sweepGarbage removes what killed processes left behind: half-unpacked layers, and partial blobs that
// are older than age.
func (s *Store) sweepGarbage(age time.Duration) error {
	work, err := os.ReadDir(s.path("work"))
	if err != nil {
		return err
	}
	for _, e := range work {
		if err := s.sweepWork(s.path("work", e.Name()), age); err != nil {
			return err
		}
	}
	return s.emptyTrash()
}

func (s *Store) sweepWork(dir string, age time.Duration) error {
	l, err := durable.TryLock(dir)
	if err != nil {
		return nil // in use, or gone
	}
	defer l.Close()
	if err := s.discard(filepath.Join(dir, newLayer)); err != nil {
		return err
	}
	info, err := os.Stat(filepath.Join(dir, partialBlob))
	if err == nil && time.Since(info.ModTime()) < age && !s.hasLayer("sha256:"+filepath.Base(dir)) {
		return nil
	}
	return s.discard(dir)
}

func writeJSON(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return durable.WriteFile(path, append(b, '\n'))
}

// maxRecord bounds the store's own files.
const maxRecord = 16 << 20

func readJSON(path string, v any) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxRecord))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s is damaged: %w", path, err)
	}
	return nil
}
