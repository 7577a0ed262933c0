// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"diwan.dev/diwan/internal/platform/durable"
)

// Use is the right to rely on blobs: none is removed before Close.
type Use struct {
	*Store
	lock io.Closer
}

// Use waits until nobody removes blobs.
func (s *Store) Use(ctx context.Context) (*Use, error) {
	l, err := durable.Share(ctx, s.path("use"))
	if err != nil {
		return nil, fmt.Errorf("cannot lock the store of models: %w", err)
	}
	return &Use{s, l}, nil
}

// Close gives the right up.
func (u *Use) Close() error { return u.lock.Close() }

// Has reports whether a blob is there.
func (u *Use) Has(d ocispec.Descriptor) bool {
	info, err := os.Stat(u.blobPath(d.Digest))
	return err == nil && info.Size() == d.Size
}

// ErrDigest is wrapped by errors about content that does not have its digest.
var ErrDigest = errors.New("the content does not have its digest")

// Receive brings a blob into the store, unless it is there. fetch writes it from the byte offset on, which is
// where an earlier call was interrupted; what it writes is kept if it fails. Content with another digest or
// size is not kept, and the error wraps [ErrDigest].
func (u *Use) Receive(ctx context.Context, d ocispec.Descriptor, fetch func(w io.Writer, offset int64) error) error {
	if u.Has(d) {
		return nil
	}
	work := u.path("work", d.Digest.Encoded())
	l, err := durable.LockDir(ctx, work)
	if err != nil {
		return fmt.Errorf("cannot lock the blob %s: %w", d.Digest, err)
	}
	defer l.Close()
	if u.Has(d) { // somebody else was faster
		return os.RemoveAll(work)
	}
	f, err := os.OpenFile(filepath.Join(work, "data"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	w := &receiver{file: f, hash: sha256.New(), limit: d.Size}
	offset, err := w.resume()
	if err != nil {
		return fmt.Errorf("cannot resume the blob %s: %w", d.Digest, err)
	}
	if offset < d.Size || d.Size == 0 {
		if err := fetch(w, offset); err != nil {
			if errors.Is(err, ErrDigest) {
				err = errors.Join(err, f.Truncate(0))
			}
			return err
		}
	}
	if got := w.digest(); w.size != d.Size || got != d.Digest {
		if err := f.Truncate(0); err != nil {
			return err
		}
		return fmt.Errorf("%w: %s with %d bytes instead of %s with %d", ErrDigest, got, w.size, d.Digest, d.Size)
	}
	if err := u.publish(f, d.Digest); err != nil {
		return fmt.Errorf("cannot keep the blob %s: %w", d.Digest, err)
	}
	return os.RemoveAll(work)
}

// publish gives a complete file the name of its blob.
func (u *Use) publish(f *os.File, d digest.Digest) error {
	if err := f.Chmod(0o400); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), u.blobPath(d)); err != nil {
		return err
	}
	return durable.SyncDir(u.path("blobs"))
}

// writeStep is after how many bytes the kernel begins to write.
const writeStep = 8 << 20

// receiver writes a file and its digest.
type receiver struct {
	file        *os.File
	hash        hash.Hash
	size, limit int64
	started     int64 // up to where the kernel was told to write
}

// resume reads what is there.
func (w *receiver) resume() (int64, error) {
	info, err := w.file.Stat()
	if err != nil {
		return 0, err
	}
	if info.Size() > w.limit {
		return 0, w.file.Truncate(0)
	}
	w.size, err = io.CopyBuffer(struct{ io.Writer }{w.hash}, struct{ io.Reader }{w.file}, make([]byte, 1<<20))
	return w.size, err
}

// Write refuses more than the blob's size.
func (w *receiver) Write(p []byte) (int, error) {
	if int64(len(p)) > w.limit-w.size {
		return 0, fmt.Errorf("%w: it has more than %d bytes", ErrDigest, w.limit)
	}
	n, err := w.file.WriteAt(p, w.size)
	w.hash.Write(p[:n])
	w.size += int64(n)
	if w.size-w.started >= writeStep {
		durable.StartWriting(w.file, w.started, w.size-w.started)
		w.started = w.size
	}
	return n, err
}

func (w *receiver) digest() digest.Digest {
	return digest.Digest("sha256:" + hex.EncodeToString(w.hash.Sum(nil)))
}

// Put keeps a small blob and returns its digest.
func (u *Use) Put(ctx context.Context, b []byte) (digest.Digest, error) {
	d := ocispec.Descriptor{Digest: digest.FromBytes(b), Size: int64(len(b))}
	return d.Digest, u.Receive(ctx, d, func(w io.Writer, offset int64) error {
		_, err := io.Copy(w, bytes.NewReader(b[offset:]))
		return err
	})
}

// Name gives a manifest, all of whose blobs are in the store, a name, which may have meant another one.
func (u *Use) Name(ctx context.Context, n Name, manifest digest.Digest) (*Version, error) {
	l, err := durable.Lock(ctx, u.path("lock"))
	if err != nil {
		return nil, fmt.Errorf("cannot lock the store of models: %w", err)
	}
	defer l.Close()
	r := nameRecord{Name: n.String(), Manifest: manifest, Created: time.Now().UTC().Truncate(time.Second)}
	v, err := u.version(r)
	if err != nil {
		return nil, fmt.Errorf("cannot name %s: %w", n, err)
	}
	for _, d := range v.Manifest.Blobs() {
		if !u.Has(d) {
			return nil, fmt.Errorf("cannot name %s: the store lacks its blob %s", n, d.Digest)
		}
	}
	if err := writeJSON(u.path("names", hashed(r.Name)), r); err != nil {
		return nil, fmt.Errorf("cannot name %s: %w", n, err)
	}
	return v, nil
}

// Upload returns where an upload of a blob to a repository goes on, "" if nowhere.
func (s *Store) Upload(repository string, d digest.Digest) string {
	var r struct{ Location string }
	if readJSON(s.path("uploads", hashed(repository+"@"+string(d))), &r) != nil {
		return ""
	}
	return r.Location
}

// SetUpload remembers where an upload goes on; "" forgets it.
func (s *Store) SetUpload(repository string, d digest.Digest, location string) error {
	path := s.path("uploads", hashed(repository+"@"+string(d)))
	if location == "" {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	b := struct{ Location string }{location}
	return writeJSON(path, b)
}
