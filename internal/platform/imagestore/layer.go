// SPDX-License-Identifier: Apache-2.0

package imagestore

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"diwan.dev/diwan/internal/platform/durable"
	"diwan.dev/diwan/internal/platform/imagestore/union"
	"diwan.dev/diwan/internal/platform/imagestore/unpack"
)

const (
	// Names in a layer's directory.
	layerRoot   = "root"
	layerFile   = "layer.json"
	layerRecipe = "recipe.zst"
	layerBlob   = "blob"
	// partialBlob and newLayer are names in a layer's directory below work.
	partialBlob = "blob.part"
	newLayer    = "layer"
)

// layerInfo is what a store records of a layer.
type layerInfo struct {
	Chain  string `json:"chain"`
	DiffID string `json:"diffID"`
	// Blob and BlobSize are of the blob that it came from.
	Blob     string `json:"blob,omitempty"`
	BlobSize int64  `json:"blobSize,omitempty"`
	// Stream is the length of the uncompressed tar stream.
	Stream int64 `json:"stream"`
	// Kept says that the blob is kept.
	Kept bool `json:"kept,omitempty"`
	unpack.Report
}

// layerSpec is a layer that an image needs.
type layerSpec struct {
	chain  string
	diffID string
	blob   string // digest
	size   int64  // of the blob
	// mediaType is the blob's.
	mediaType string
}

// source provides the blob of a layer as it comes. partial is where it may keep what it has until the
// layer is complete.
type source interface {
	open(ctx context.Context, l layerSpec, partial string) (blobReader, error)
	// distrust says that a blob was not what it should be. It returns whether another attempt would ask
	// somebody else.
	distrust() bool
}

// blobReader is a blob that is read from its beginning.
type blobReader interface {
	io.ReadCloser
	// resumed says that some of the bytes are from an earlier attempt.
	resumed() bool
}

// chainIDs computes the IDs of the merges of a layer and those below it
// (github.com/opencontainers/image-spec config.md).
func chainIDs(diffIDs []string) []string {
	var chains []string
	for i, d := range diffIDs {
		if i > 0 {
			d = digestOf([]byte(chains[i-1] + " " + d))
		}
		chains = append(chains, d)
	}
	return chains
}

func (s *Store) layerPath(chain string, elem ...string) string {
	return s.path(append([]string{"layers", digestHex(chain)}, elem...)...)
}

func (s *Store) hasLayer(chain string) bool {
	_, err := os.Stat(s.layerPath(chain, layerFile))
	return err == nil
}

func (s *Store) layerInfo(chain string) (layerInfo, error) {
	var info layerInfo
	err := readJSON(s.layerPath(chain, layerFile), &info)
	return info, err
}

// assembly brings the layers of one image into the store.
type assembly struct {
	store  *Store
	source source
	budget *unpack.Budget
	slots  *semaphore.Weighted
	layers []layerSpec
	// settled[i] is closed when dirs[i], the root of layer i, has all that it will have.
	settled []chan struct{}
	dirs    []*os.File
	// complete is told of each layer that is there.
	complete func(l layerSpec)
}

// assemble brings layers, lowest first, into the store: several at a time. The caller's lease protects
// them.
func (s *Store) assemble(ctx context.Context, layers []layerSpec, src source, budget *unpack.Budget, complete func(layerSpec)) error {
	a := &assembly{
		store: s, source: src, budget: budget, layers: layers, complete: complete,
		slots: semaphore.NewWeighted(int64(s.config.Layers)),
		dirs:  make([]*os.File, len(layers)),
	}
	for range layers {
		a.settled = append(a.settled, make(chan struct{}))
	}
	g, ctx := errgroup.WithContext(ctx)
	for i := range layers {
		g.Go(func() error { return a.layer(ctx, i) })
	}
	err := g.Wait()
	for _, d := range a.dirs {
		if d != nil {
			d.Close()
		}
	}
	return err
}

// layer brings layer i into the store.
//
// Waits form no circle, over all processes: a holder of a layer's lock waits for slots, whose holders
// wait for nobody, and for the layer below in its chain, never for one above.
func (a *assembly) layer(ctx context.Context, i int) (err error) {
	s, l := a.store, a.layers[i]
	found := func() error {
		if a.dirs[i], err = openPath(s.layerPath(l.chain, layerRoot)); err != nil {
			return err
		}
		close(a.settled[i])
		a.complete(l)
		return nil
	}
	if s.hasLayer(l.chain) {
		return found()
	}
	work := s.path("work", digestHex(l.chain))
	held, err := durable.LockDir(ctx, work)
	if err != nil {
		return fmt.Errorf("cannot lock the layer %s: %w", l.diffID, err)
	}
	defer held.Close()
	if s.hasLayer(l.chain) {
		if err := s.discard(work); err != nil {
			return err
		}
		return found()
	}
	u, info, err := a.unpack(ctx, l, work)
	if err != nil {
		return fmt.Errorf("cannot get the layer %s: %w", l.diffID, err)
	}
	dir := filepath.Join(work, newLayer)
	var below *union.View
	if i > 0 {
		select {
		case <-a.settled[i-1]:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		var dirs []*os.File
		for k := i - 1; k >= 0; k-- {
			dirs = append(dirs, a.dirs[k])
		}
		below = union.New(dirs)
	}
	if info.Report, err = u.Settle(below); err != nil {
		return as(Corrupt, fmt.Errorf("cannot unpack the layer %s: %w", l.diffID, err))
	}
	if a.dirs[i], err = openPath(filepath.Join(dir, layerRoot)); err != nil {
		return err
	}
	close(a.settled[i])
	if err := a.publish(l, work, info); err != nil {
		return fmt.Errorf("cannot keep the layer %s: %w", l.diffID, err)
	}
	a.complete(l)
	return nil
}

// publish makes a layer visible, whole and durable.
func (a *assembly) publish(l layerSpec, work string, info layerInfo) error {
	s, dir := a.store, filepath.Join(work, newLayer)
	if !info.Exact {
		if err := os.Remove(filepath.Join(dir, layerRecipe)); err != nil {
			return err
		}
	}
	if s.config.KeepBlobs || !info.Exact {
		// A link: a kill before the rename below does not lose what was fetched.
		if err := os.Link(filepath.Join(work, partialBlob), filepath.Join(dir, layerBlob)); err != nil {
			return err
		}
		info.Kept = true
	}
	if err := writeJSON(filepath.Join(dir, layerFile), info); err != nil {
		return err
	}
	if err := s.sync.sync(s.dir); err != nil {
		return err
	}
	if err := os.Rename(dir, s.layerPath(l.chain)); err != nil {
		return err
	}
	if err := durable.SyncDir(s.path("layers")); err != nil {
		return err
	}
	return s.discard(work)
}

// unpack gets a layer's blob and unpacks it into work, checking both digests.
func (a *assembly) unpack(ctx context.Context, l layerSpec, work string) (*unpack.Unpacked, layerInfo, error) {
	if err := a.slots.Acquire(ctx, 1); err != nil {
		return nil, layerInfo{}, context.Cause(ctx)
	}
	defer a.slots.Release(1)
	partial := filepath.Join(work, partialBlob)
	for {
		u, info, resumed, err := a.attempt(ctx, l, work, partial)
		kind := KindOf(err)
		if kind == Corrupt || kind == TooLarge || kind == Unsupported {
			os.Remove(partial) // nothing to resume
		}
		// What an earlier attempt left may have been damaged, or a mirror is; either happens once.
		if kind == Corrupt && (resumed || a.source.distrust()) {
			continue
		}
		return u, info, err
	}
}

// attempt is one attempt of unpack.
func (a *assembly) attempt(ctx context.Context, l layerSpec, work, partial string) (_ *unpack.Unpacked, info layerInfo, resumed bool, err error) {
	s, dir := a.store, filepath.Join(work, newLayer)
	if err := s.discard(dir); err != nil {
		return nil, info, false, err
	}
	if err := os.MkdirAll(filepath.Join(dir, layerRoot), 0o700); err != nil {
		return nil, info, false, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	blob, err := a.source.open(ctx, l, partial)
	if err != nil {
		return nil, info, false, err
	}
	defer blob.Close()
	resumed = blob.resumed()
	compressed := &hashReader{r: blob, h: sha256.New()}
	u, stream, diffID, err := a.stream(ctx, compressed, dir)
	if err != nil && (KindOf(err) == TooLarge || ctx.Err() != nil) {
		return nil, info, false, err
	}
	// What a decompressor leaves unread belongs to the blob. If unpacking failed, the digest tells whose
	// fault it is.
	if _, drainErr := io.Copy(io.Discard, compressed); drainErr != nil {
		return nil, info, resumed, drainErr
	}
	if compressed.err != nil {
		return nil, info, resumed, compressed.err
	}
	if got := compressed.digest(); l.blob != "" && got != l.blob {
		return nil, info, resumed, failf(Corrupt, "what was received has the digest %s instead of %s", got, l.blob)
	}
	if err != nil {
		return nil, info, false, as(Corrupt, err)
	}
	if diffID != l.diffID {
		return nil, info, false, failf(Corrupt, "unpacked, it has the digest %s instead of %s", diffID, l.diffID)
	}
	info = layerInfo{Chain: l.chain, DiffID: l.diffID, Blob: l.blob, BlobSize: l.size, Stream: stream}
	return u, info, resumed, nil
}

// stream unpacks a blob into dir. It returns the length and the digest of the tar stream.
func (a *assembly) stream(ctx context.Context, blob io.Reader, dir string) (*unpack.Unpacked, int64, string, error) {
	plain, closePlain, err := decompress(blob)
	if err != nil {
		return nil, 0, "", err
	}
	defer closePlain()
	recipe, err := os.OpenFile(filepath.Join(dir, layerRecipe), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, 0, "", err
	}
	defer recipe.Close()
	enc, err := zstd.NewWriter(recipe, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<20))
	if err != nil {
		return nil, 0, "", err
	}
	defer enc.Close()
	tar := &hashReader{r: plain, h: sha256.New()}
	ahead := newReadAhead(tar)
	u, err := unpack.Layer(ctx, filepath.Join(dir, layerRoot), ahead, unpack.Options{
		UserXattr: a.store.format.UserXattr, KeepOwners: a.store.format.Owners, Devices: a.store.format.Devices,
		Budget: a.budget, Recipe: enc,
	})
	ahead.close()
	switch {
	case errors.Is(err, unpack.ErrTooLarge):
		return nil, 0, "", as(TooLarge, err)
	case err != nil:
		return nil, 0, "", err
	}
	if err := enc.Close(); err != nil {
		return nil, 0, "", err
	}
	return u, tar.n, tar.digest(), recipe.Close()
}

// decompress finds out how a blob is compressed, since media types are not always right.
func decompress(r io.Reader) (io.Reader, func(), error) {
	all := bufio.NewReaderSize(r, 64<<10)
	head, err := all.Peek(6)
	if err != nil && err != io.EOF {
		return nil, nil, err
	}
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(all)
		if err != nil {
			return nil, nil, err
		}
		return z, func() { z.Close() }, nil
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(all, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(128<<20))
		if err != nil {
			return nil, nil, err
		}
		return z, z.Close, nil
	case bytes.HasPrefix(head, []byte("\xfd7zXZ\x00")), bytes.HasPrefix(head, []byte("BZh")):
		return nil, nil, failf(Unsupported, "it is compressed by xz or bzip2; images may use gzip and zstd")
	default:
		return all, func() {}, nil
	}
}

// hashReader computes the digest of what is read through it.
type hashReader struct {
	r   io.Reader
	h   hash.Hash
	n   int64
	err error // of r, unless its end
}

// Read reads.
func (h *hashReader) Read(p []byte) (int, error) {
	n, err := h.r.Read(p)
	h.h.Write(p[:n])
	h.n += int64(n)
	if err != nil && err != io.EOF {
		h.err = err
	}
	return n, err
}

func (h *hashReader) digest() string { return "sha256:" + hex.EncodeToString(h.h.Sum(nil)) }

// readAhead reads in a goroutine, so that decompressing and unpacking overlap.
type readAhead struct {
	chunks chan []byte
	free   chan []byte
	stop   chan struct{}
	cur    []byte
	buf    []byte
	err    error // set before chunks is closed
	wait   sync.WaitGroup
}

const (
	readAheadChunk  = 256 << 10
	readAheadChunks = 4
)

func newReadAhead(r io.Reader) *readAhead {
	a := &readAhead{chunks: make(chan []byte, readAheadChunks), free: make(chan []byte, readAheadChunks), stop: make(chan struct{})}
	for range readAheadChunks {
		a.free <- make([]byte, readAheadChunk)
	}
	a.wait.Go(func() {
		defer close(a.chunks)
		for {
			var buf []byte
			select {
			case buf = <-a.free:
			case <-a.stop:
				return
			}
			n := 0
			var err error
			for n < len(buf) && err == nil {
				var m int
				m, err = r.Read(buf[n:])
				n += m
			}
			if n > 0 {
				a.chunks <- buf[:n] // has room: there are no more buffers than that
			}
			if err != nil {
				a.err = err
				return
			}
			select {
			case <-a.stop:
				return
			default:
			}
		}
	})
	return a
}

// Read reads.
func (a *readAhead) Read(p []byte) (int, error) {
	for len(a.cur) == 0 {
		if a.buf != nil {
			a.free <- a.buf[:readAheadChunk]
			a.buf = nil
		}
		chunk, ok := <-a.chunks
		if !ok {
			return 0, a.err
		}
		a.buf, a.cur = chunk, chunk
	}
	n := copy(p, a.cur)
	a.cur = a.cur[n:]
	return n, nil
}

// close ends the goroutine. It waits for a read that is in progress.
func (a *readAhead) close() {
	close(a.stop)
	a.wait.Wait()
}
