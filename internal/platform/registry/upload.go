// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"regexp"
	"sync"

	"github.com/google/uuid"
)

const (
	// checkpointEvery is after how many bytes the state of an upload's hash is
	// stored: as many are hashed again after a restart.
	checkpointEvery = 256 << 20
	// copyBuffer is the size in bytes of the memory that an upload passes through.
	copyBuffer = 512 << 10
)

var (
	uploadForm  = regexp.MustCompile(`^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	copyBuffers = sync.Pool{New: func() any { return new([copyBuffer]byte) }}
)

// upload is a blob that is being pushed. Its data is hashed as it is written.
type upload struct {
	id      string
	session session
	busy    chan struct{} // has one element while the upload is in use
	hash    hash.Hash     // of size bytes
	size    int64         // bytes received
	ended   bool
}

// session is what a restart needs to know of an upload. Hash is the state after
// Size bytes, which were on stable storage before the session was written.
type session struct {
	Repository string `json:"repository"`
	Algorithm  string `json:"algorithm"`
	Size       int64  `json:"size"`
	Hash       []byte `json:"hash,omitempty"`
}

func (u *upload) dir() string         { return path.Join(uploadsDir, u.id) }
func (u *upload) dataFile() string    { return path.Join(u.dir(), "data") }
func (u *upload) sessionFile() string { return path.Join(u.dir(), "session") }

func unknownUpload(id string) error {
	return fail(http.StatusNotFound, BlobUploadUnknown, "there is no upload %.40q: it has ended, or was given up", id)
}

// begin starts an upload to a repository, whose digest will be of an algorithm.
func (r *Registry) begin(repo, algorithm string) (*upload, error) {
	if err := checkName(repo); err != nil {
		return nil, err
	}
	newHash, ok := algorithms[algorithm]
	if !ok {
		return nil, fail(http.StatusBadRequest, DigestInvalid, "%.40q is not a supported digest algorithm: sha256 and sha512 are", algorithm)
	}
	if max := r.config.MaxBytes; max > 0 && r.used.Load() >= max {
		return nil, r.overBudget()
	}
	u := &upload{
		id:      uuid.NewString(),
		session: session{Repository: repo, Algorithm: algorithm},
		busy:    make(chan struct{}, 1),
		hash:    newHash(),
	}
	if err := r.files.root.Mkdir(u.dir(), 0o700); err != nil {
		return nil, fmt.Errorf("cannot begin an upload: %w", err)
	}
	if err := errors.Join(r.files.create(u.dataFile()), r.checkpoint(u)); err != nil {
		return nil, fmt.Errorf("cannot begin an upload: %w", errors.Join(err, r.files.root.RemoveAll(u.dir())))
	}
	r.uploadsMu.Lock()
	defer r.uploadsMu.Unlock()
	r.uploads[u.id] = u
	return u, nil
}

// checkpoint stores the session. The data so far must be on stable storage.
func (r *Registry) checkpoint(u *upload) error {
	if u.size > 0 {
		state, err := u.hash.(encoding.BinaryMarshaler).MarshalBinary()
		if err != nil {
			return fmt.Errorf("cannot store the state of the hash: %w", err)
		}
		u.session.Hash = state
	}
	u.session.Size = u.size
	data, err := json.Marshal(u.session)
	if err != nil {
		return err
	}
	// The session needs no sync of its own. After a loss of power an older one
	// serves as well, and one that cannot be read ends the upload.
	next := u.sessionFile() + ".next"
	if err := r.files.root.WriteFile(next, data, 0o600); err != nil {
		return err
	}
	return r.files.root.Rename(next, u.sessionFile())
}

// acquire finds the upload of a repository and waits until no other request
// uses it. The caller releases it.
func (r *Registry) acquire(ctx context.Context, repo, id string) (*upload, error) {
	u, err := r.upload(id)
	if err != nil {
		return nil, orUnknown(err, unknownUpload(id))
	}
	if u.session.Repository != repo {
		return nil, unknownUpload(id)
	}
	select {
	case u.busy <- struct{}{}:
	case <-ctx.Done():
		return nil, fail(http.StatusRequestTimeout, BlobUploadInvalid, "another request is still writing to this upload")
	}
	if u.ended {
		u.release()
		return nil, unknownUpload(id)
	}
	return u, nil
}

func (u *upload) release() { <-u.busy }

// upload finds an upload in memory or, after a restart, on disk.
func (r *Registry) upload(id string) (*upload, error) {
	if !uploadForm.MatchString(id) {
		return nil, fs.ErrNotExist
	}
	r.uploadsMu.Lock()
	u, ok := r.uploads[id]
	r.uploadsMu.Unlock()
	if ok {
		return u, nil
	}
	u, err := r.restore(id)
	if err != nil {
		return nil, err
	}
	r.uploadsMu.Lock()
	defer r.uploadsMu.Unlock()
	if first, ok := r.uploads[id]; ok {
		return first, nil // restored by another request meanwhile
	}
	r.uploads[id] = u
	return u, nil
}

// restore reads an upload from disk: the hash as it was at the last checkpoint,
// then the data that came after it. So the hash is always that of the data
// which the file has, even where a loss of power took some of it.
func (r *Registry) restore(id string) (*upload, error) {
	u := &upload{id: id, busy: make(chan struct{}, 1)}
	data, err := r.files.root.ReadFile(u.sessionFile())
	if err != nil {
		return nil, err
	}
	// What cannot be restored is no upload any more, and is collected.
	damaged := fmt.Errorf("the upload %s cannot be resumed: %w", id, fs.ErrNotExist)
	if json.Unmarshal(data, &u.session) != nil {
		return nil, damaged
	}
	newHash, ok := algorithms[u.session.Algorithm]
	if !ok {
		return nil, damaged
	}
	u.hash = newHash()
	if len(u.session.Hash) > 0 && u.hash.(encoding.BinaryUnmarshaler).UnmarshalBinary(u.session.Hash) != nil {
		return nil, damaged
	}
	file, err := r.files.root.Open(u.dataFile())
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if end, err := file.Seek(0, io.SeekEnd); err != nil || end < u.session.Size {
		return nil, damaged
	}
	if _, err := file.Seek(u.session.Size, io.SeekStart); err != nil {
		return nil, err
	}
	tail, err := io.Copy(u.hash, file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the data of the upload %s: %w", id, err)
	}
	u.size = u.session.Size + tail
	return u, nil
}

// write appends what body has. What was received stays, also when it fails.
func (r *Registry) write(u *upload, body io.Reader) (err error) {
	file, err := r.files.root.OpenFile(u.dataFile(), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	buffer := copyBuffers.Get().(*[copyBuffer]byte)
	defer copyBuffers.Put(buffer)
	for {
		n, readErr := fill(body, buffer[:])
		if n > 0 {
			if err := r.append(u, file, buffer[:n]); err != nil {
				return err
			}
		}
		if readErr == io.EOF {
			return nil
		}
		if readErr != nil {
			return fail(http.StatusBadRequest, BlobUploadInvalid, "the data ended early, after %d bytes of the blob: %v", u.size, readErr)
		}
	}
}

// fill reads until the buffer is full or there is an error. Unlike
// io.ReadFull, it tells the data's end from a connection's.
func fill(body io.Reader, buffer []byte) (n int, err error) {
	for n < len(buffer) && err == nil {
		var m int
		m, err = body.Read(buffer[n:])
		n += m
	}
	return n, err
}

// append adds data to an upload's file, and sets a checkpoint if one is due.
func (r *Registry) append(u *upload, file *os.File, data []byte) error {
	if err := r.reserve(int64(len(data))); err != nil {
		return err
	}
	// The offset is explicit: a failed write may have left bytes beyond size.
	if _, err := file.WriteAt(data, u.size); err != nil {
		r.used.Add(-int64(len(data)))
		return fmt.Errorf("cannot write the data of an upload: %w", err)
	}
	u.hash.Write(data)
	u.size += int64(len(data))
	if u.size-u.session.Size < checkpointEvery {
		return nil
	}
	if err := file.Sync(); err != nil {
		return fmt.Errorf("cannot sync the data of an upload: %w", err)
	}
	return r.checkpoint(u)
}

// finish makes a complete upload a blob of its repository.
func (r *Registry) finish(u *upload, d Digest) error {
	if err := r.verify(u, d); err != nil {
		return err
	}
	r.mu.RLock()
	// A link without content is not seen. In the other order, a process killed
	// between the two would leave neither the upload nor the blob.
	err := r.link(u.session.Repository, d)
	if err == nil {
		err = r.publish(u.dataFile(), d)
	}
	r.mu.RUnlock()
	if err != nil {
		return fmt.Errorf("cannot store the blob %s: %w", d, err)
	}
	u.size = 0 // its bytes are the blob's now
	return r.end(u)
}

// verify compares an upload's data with its digest and brings it to stable
// storage. An upload that is not what was promised ends.
func (r *Registry) verify(u *upload, d Digest) error {
	file, err := r.files.root.OpenFile(u.dataFile(), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := file.Truncate(u.size); err != nil {
		return fmt.Errorf("cannot cut an upload to its size: %w", err)
	}
	have := sum(u.session.Algorithm, u.hash)
	if d.algorithm() != u.session.Algorithm {
		// The client has named another algorithm only now.
		h := algorithms[d.algorithm()]()
		if _, err := io.Copy(h, file); err != nil {
			return fmt.Errorf("cannot read the data of an upload: %w", err)
		}
		have = sum(d.algorithm(), h)
	}
	if have != d {
		return errors.Join(fail(http.StatusBadRequest, DigestInvalid, "the blob's digest is %s, not %s", have, d), r.end(u))
	}
	if err := file.Sync(); err != nil {
		return fmt.Errorf("cannot sync a blob: %w", err)
	}
	return nil
}

// end removes an upload and what it has on disk.
func (r *Registry) end(u *upload) error {
	u.ended = true
	r.used.Add(-u.size)
	r.uploadsMu.Lock()
	delete(r.uploads, u.id)
	r.uploadsMu.Unlock()
	if err := r.files.root.RemoveAll(u.dir()); err != nil {
		return fmt.Errorf("cannot remove an upload: %w", err)
	}
	return nil
}

// PushBlob stores a blob that has a digest. It reads data to its end and needs
// little memory, whatever the size.
func (r *Registry) PushBlob(ctx context.Context, repo, digest string, data io.Reader) error {
	d, err := checked(repo, digest)
	if err != nil {
		return err
	}
	u, err := r.begin(repo, d.algorithm())
	if err != nil {
		return err
	}
	u.busy <- struct{}{}
	defer u.release()
	if err := r.write(u, &contextReader{ctx, data}); err != nil {
		return errors.Join(err, r.end(u))
	}
	return r.finish(u, d)
}

// contextReader ends with its context.
type contextReader struct {
	ctx  context.Context
	data io.Reader
}

func (c *contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.data.Read(p)
}
