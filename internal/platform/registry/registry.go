// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// Config says where a registry is and who may use it.
type Config struct {
	// Dir is the registry's directory. It is created if there is none, with
	// mode 0700, and belongs to one Registry at a time.
	Dir string

	// Authorize decides what the sender of a request may do. An error means
	// that the sender's credentials are wrong. Without Authorize every request
	// is refused; the Go API serves regardless. See [TokenPolicy].
	Authorize func(*http.Request) (Access, error)

	// Hosts are names, without port, by which requests may call this server
	// besides loopback addresses, localhost and names below localhost. A page
	// in a browser that makes its own name resolve to a loopback address
	// (DNS rebinding) calls it by that other name.
	Hosts []string

	// MaxBytes bounds the content and the unfinished uploads, in bytes. Zero
	// means no bound.
	MaxBytes int64

	// Log is told of failures that are not the client's. Nil drops them.
	Log func(*http.Request, error)
}

// Registry is an open registry. Its methods may be called concurrently.
type Registry struct {
	config Config
	files  files
	lock   *os.File
	used   atomic.Int64 // bytes of content and uploads
	pushes sync.Mutex   // makes replacing content and counting it one step

	// mu is held shared where a push or a look-up relies on content, and
	// exclusively where something is removed.
	mu sync.RWMutex

	collecting sync.Mutex // one collection at a time
	heldMu     sync.Mutex
	held       map[Digest]struct{} // what pushes relied on since the collection began; nil outside of one

	uploadsMu sync.Mutex
	uploads   map[string]*upload
}

// Open opens the registry in a directory. It fails if another process, or
// another Registry of this one, has it open.
func Open(config Config) (*Registry, error) {
	if err := os.MkdirAll(config.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot create the registry's directory: %w", err)
	}
	root, err := os.OpenRoot(config.Dir)
	if err != nil {
		return nil, fmt.Errorf("cannot open the registry's directory: %w", err)
	}
	r := &Registry{config: config, files: files{root}, uploads: map[string]*upload{}}
	if err := r.open(); err != nil {
		r.Close()
		return nil, fmt.Errorf("cannot open the registry in %s: %w", config.Dir, err)
	}
	return r, nil
}

func (r *Registry) open() error {
	lock, err := r.files.root.OpenFile("lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	r.lock = lock
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("another process has it open: %w", err)
	}
	// What tmp holds, nobody was told of.
	if err := r.files.root.RemoveAll(tmpDir); err != nil {
		return err
	}
	for _, dir := range []string{tmpDir, uploadsDir, repositoriesDir, blobsDir} {
		if err := r.files.mkdirAll(dir); err != nil {
			return err
		}
	}
	for algorithm := range algorithms {
		if err := r.files.mkdirAll(path.Join(blobsDir, algorithm)); err != nil {
			return err
		}
	}
	for _, dir := range []string{blobsDir, uploadsDir} {
		err := fs.WalkDir(r.files.root.FS(), dir, func(_ string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() || dir == uploadsDir && entry.Name() != "data" {
				return err
			}
			info, err := entry.Info()
			if err != nil {
				return err
			}
			r.used.Add(info.Size())
			return nil
		})
		if err != nil {
			return fmt.Errorf("cannot measure %s: %w", dir, err)
		}
	}
	return nil
}

// Close gives the directory up. Requests must have ended.
func (r *Registry) Close() error {
	var err error
	if r.lock != nil {
		err = r.lock.Close()
	}
	return errors.Join(err, r.files.root.Close())
}

// Usage is how much of its disk budget a registry has used.
type Usage struct {
	Bytes    int64 // content and unfinished uploads
	MaxBytes int64 // the budget; 0: none
}

// Usage returns how much is used.
func (r *Registry) Usage() Usage {
	return Usage{Bytes: r.used.Load(), MaxBytes: r.config.MaxBytes}
}

// reserve takes n bytes from the disk budget.
func (r *Registry) reserve(n int64) error {
	used := r.used.Add(n)
	if r.config.MaxBytes > 0 && used > r.config.MaxBytes {
		r.used.Add(-n)
		return r.overBudget()
	}
	return nil
}

func (r *Registry) overBudget() error {
	return fail(http.StatusForbidden, Denied,
		"the registry's disk budget of %d bytes is used up: delete images and collect the garbage, or raise the budget", r.config.MaxBytes)
}

// hold makes a collection under way keep what a push relies on. The caller has
// mu, and has touched the link.
func (r *Registry) hold(d Digest) {
	r.heldMu.Lock()
	defer r.heldMu.Unlock()
	if r.held != nil {
		r.held[d] = struct{}{}
	}
}

func (r *Registry) isHeld(d Digest) bool {
	r.heldMu.Lock()
	defer r.heldMu.Unlock()
	_, held := r.held[d]
	return held
}

// publish gives a complete file that is on stable storage and within the
// budget its name. The caller has mu and syncs the directory.
func (r *Registry) publish(file string, d Digest) error {
	r.pushes.Lock()
	defer r.pushes.Unlock()
	// Content that is there already is replaced all the same: the new file is
	// known to be right.
	before, err := r.files.size(contentFile(d))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := r.files.root.Rename(file, contentFile(d)); err != nil {
		return err
	}
	r.used.Add(-before)
	r.hold(d)
	return nil
}

// link makes content a blob of a repository. The caller has mu.
func (r *Registry) link(repo string, d Digest) error {
	if err := r.files.create(blobLink(repo, d)); err != nil {
		return err
	}
	return r.useBlob(repo, d)
}

// useBlob holds a blob of a repository, or fails with fs.ErrNotExist. The
// caller has mu.
func (r *Registry) useBlob(repo string, d Digest) error {
	if err := r.files.touch(blobLink(repo, d)); err != nil {
		return err
	}
	r.hold(d)
	return nil
}

// statBlob returns a blob's size, or fails with fs.ErrNotExist. The caller has mu.
func (r *Registry) statBlob(repo string, d Digest) (int64, error) {
	if _, err := r.files.root.Stat(blobLink(repo, d)); err != nil {
		return 0, err
	}
	return r.files.size(contentFile(d))
}

// checked checks the arguments that look-ups share.
func checked(repo, digest string) (Digest, error) {
	if err := checkName(repo); err != nil {
		return "", err
	}
	return ParseDigest(digest)
}

func unknownBlob(repo string, d Digest) error {
	return fail(http.StatusNotFound, BlobUnknown, "the repository %s has no blob %s", repo, d)
}

func orUnknown(err, unknown error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return unknown
	}
	return err
}

// Repositories returns the names of the repositories that have manifests, sorted.
func (r *Registry) Repositories() ([]string, error) {
	var names []string
	err := r.walkRepositories(func(name string) error {
		manifests, err := r.manifests(name)
		if len(manifests) > 0 {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot list the repositories: %w", err)
	}
	return names, nil
}

// StatBlob returns the size of a blob in bytes, and keeps the blob from being
// collected for a grace period.
func (r *Registry) StatBlob(repo, digest string) (int64, error) {
	d, err := checked(repo, digest)
	if err != nil {
		return 0, err
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	size, err := r.statBlob(repo, d)
	if err == nil {
		err = r.useBlob(repo, d)
	}
	return size, orUnknown(err, unknownBlob(repo, d))
}

// Blob opens a blob of a repository for reading. It stays readable until it is
// closed, whatever is deleted meanwhile.
func (r *Registry) Blob(repo, digest string) (*os.File, error) {
	d, err := checked(repo, digest)
	if err != nil {
		return nil, err
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	if _, err := r.statBlob(repo, d); err != nil {
		return nil, orUnknown(err, unknownBlob(repo, d))
	}
	file, err := r.files.root.Open(contentFile(d))
	return file, orUnknown(err, unknownBlob(repo, d))
}

// Mount makes a blob that any repository of this registry has a blob of
// another one. It copies nothing.
func (r *Registry) Mount(repo, digest string) error {
	d, err := checked(repo, digest)
	if err != nil {
		return err
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	if _, err := r.files.size(contentFile(d)); err != nil {
		return orUnknown(err, unknownBlob(repo, d))
	}
	return r.link(repo, d)
}

// walkRepositories calls visit with each directory that may be a repository,
// sorted by name.
func (r *Registry) walkRepositories(visit func(name string) error) error {
	var names []string
	err := fs.WalkDir(r.files.root.FS(), repositoriesDir, func(dir string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed meanwhile
		}
		if err != nil || !entry.IsDir() || dir == repositoriesDir {
			return err
		}
		if strings.HasPrefix(entry.Name(), "_") {
			return fs.SkipDir
		}
		if name := strings.TrimPrefix(dir, repositoriesDir+"/"); validName(name) {
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	// The walk's order is by component, in which "a/b" precedes "a-b".
	return visitSorted(names, visit)
}
