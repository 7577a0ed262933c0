// SPDX-License-Identifier: Apache-2.0

package imagestore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
)

// remote is a repository at one or more endpoints.
type remote struct {
	// clients are in the order in which they are tried.
	clients []*client
	// received is told of n more bytes of blobs that are there.
	received func(n int64)
}

func (r *remote) close() {
	for _, c := range r.clients {
		c.close()
	}
}

// each calls f with the clients until it succeeds. The error is that of the original, the last, with
// those of its mirrors.
func (r *remote) each(ctx context.Context, f func(c *client) error) error {
	var mirrors []string
	for i, c := range r.clients {
		if c.failed.Load() && i < len(r.clients)-1 {
			continue
		}
		err := f(c)
		c.failed.Store(err != nil)
		switch {
		case err == nil || ctx.Err() != nil:
			return err
		case i < len(r.clients)-1:
			mirrors = append(mirrors, fmt.Sprintf("%s: %s", c.endpoint.host, err))
		case len(mirrors) > 0:
			return &classified{kind: KindOf(err), err: fmt.Errorf("%w (tried before: %s)", err, strings.Join(mirrors, "; "))}
		default:
			return err
		}
	}
	return errors.New("there is no endpoint")
}

// manifest fetches a manifest or an index by a tag or digest.
func (r *remote) manifest(ctx context.Context, reference string) (*document, error) {
	var d *document
	err := r.each(ctx, func(c *client) error {
		return c.retry(ctx, triesManifest, func() (bool, error) {
			resp, err := c.get(ctx, "manifests/"+reference, http.Header{"Accept": {accept()}}, http.StatusOK)
			if err != nil {
				return false, err
			}
			raw, err := readBody(resp, maxManifest, "manifest")
			if err != nil {
				return false, err
			}
			if got := digestOf(raw); strings.Contains(reference, ":") && got != reference {
				return false, failf(Corrupt, "its manifest has the digest %s instead of %s", got, reference)
			}
			d, err = parseDocument(raw, resp.Header.Get("Content-Type"))
			return false, err
		})
	})
	return d, err
}

// small fetches a blob of at most limit bytes.
func (r *remote) small(ctx context.Context, digest string, size, limit int64) ([]byte, error) {
	var raw []byte
	err := r.each(ctx, func(c *client) error {
		return c.retry(ctx, triesManifest, func() (bool, error) {
			resp, err := c.get(ctx, "blobs/"+digest, nil, http.StatusOK)
			if err != nil {
				return false, err
			}
			if raw, err = readBody(resp, limit, "configuration"); err != nil {
				return false, err
			}
			if got := digestOf(raw); got != digest || int64(len(raw)) != size {
				return false, failf(Corrupt, "its configuration has the digest %s and %d bytes instead of %s and %d", got, len(raw), digest, size)
			}
			return false, nil
		})
	})
	return raw, err
}

// readBody reads and closes a body of at most limit bytes.
func readBody(resp *http.Response, limit int64, what string) ([]byte, error) {
	defer resp.Body.Close()
	if resp.ContentLength > limit {
		return nil, failf(TooLarge, "its %s has %d bytes, and may have at most %d", what, resp.ContentLength, limit)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > limit {
		return nil, failf(TooLarge, "its %s has more than %d bytes", what, limit)
	}
	return b, nil
}

// distrust leaves mirrors alone from now on.
func (r *remote) distrust() bool {
	changed := false
	for _, c := range r.clients {
		changed = c.endpoint.mirror && !c.failed.Swap(true) || changed
	}
	return changed
}

// open fetches a layer's blob into the file partial, from where the file ends, and reads it from its
// beginning meanwhile.
func (r *remote) open(ctx context.Context, l layerSpec, partial string) (blobReader, error) {
	f, err := os.OpenFile(partial, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	start := info.Size()
	if start > l.size {
		start = 0
		if err := f.Truncate(0); err != nil {
			f.Close()
			return nil, err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	d := &download{file: f, size: start, start: start, cancel: cancel}
	d.grown = sync.NewCond(&d.mu)
	r.received(start)
	d.wait.Go(func() {
		d.end(r.each(ctx, func(c *client) error { return d.fetch(ctx, c, l, r.received) }))
	})
	return d, nil
}

// download is a blob that is being fetched into a file. It reads what is there, and waits for the rest.
type download struct {
	file   *os.File
	cancel context.CancelFunc
	wait   sync.WaitGroup
	start  int64 // how much was there before
	offset int64 // of the next read

	mu    sync.Mutex
	grown *sync.Cond
	size  int64 // of what is in the file
	done  bool
	err   error
}

func (d *download) resumed() bool { return d.start > 0 }

// Read reads.
func (d *download) Read(p []byte) (int, error) {
	d.mu.Lock()
	for d.offset == d.size && !d.done {
		d.grown.Wait()
	}
	size, err := d.size, d.err
	d.mu.Unlock()
	if d.offset == size {
		if err == nil {
			err = io.EOF
		}
		return 0, err
	}
	n, err := d.file.ReadAt(p[:min(int64(len(p)), size-d.offset)], d.offset)
	d.offset += int64(n)
	if n > 0 {
		err = nil
	}
	return n, err
}

// Close ends fetching. What was fetched remains in the file.
func (d *download) Close() error {
	d.cancel()
	d.wait.Wait()
	return d.file.Close()
}

func (d *download) end(err error) {
	d.mu.Lock()
	d.done, d.err = true, err
	d.mu.Unlock()
	d.grown.Broadcast()
}

// write appends.
func (d *download) write(p []byte) error {
	if _, err := d.file.WriteAt(p, d.size); err != nil { // only this goroutine changes size
		return err
	}
	d.mu.Lock()
	d.size += int64(len(p))
	d.mu.Unlock()
	d.grown.Broadcast()
	return nil
}

// fetch fetches what is missing from one endpoint.
func (d *download) fetch(ctx context.Context, c *client, l layerSpec, received func(int64)) error {
	return c.retry(ctx, tries, func() (bool, error) {
		before := d.size
		err := d.request(ctx, c, l, received)
		return d.size > before, err
	})
}

// request makes one request for what is missing.
func (d *download) request(ctx context.Context, c *client, l layerSpec, received func(int64)) error {
	if d.size == l.size {
		return nil
	}
	header := make(http.Header)
	if d.size > 0 {
		// With its end, since there are registries that want one.
		header.Set("Range", fmt.Sprintf("bytes=%d-%d", d.size, l.size-1))
	}
	resp, err := c.get(ctx, "blobs/"+l.blob, header, http.StatusOK, http.StatusPartialContent)
	var he *httpError
	if d.size > 0 && errors.As(err, &he) && he.status == http.StatusRequestedRangeNotSatisfiable {
		header.Del("Range")
		resp, err = c.get(ctx, "blobs/"+l.blob, header, http.StatusOK)
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	at := int64(0)
	if resp.StatusCode == http.StatusPartialContent {
		if _, err := fmt.Sscanf(resp.Header.Get("Content-Range"), "bytes %d-", &at); err != nil || at != d.size {
			return failf(Corrupt, "the registry answers with the range %q instead of that from byte %d", abbreviate(resp.Header.Get("Content-Range")), d.size)
		}
	}
	if resp.ContentLength >= 0 && at+resp.ContentLength != l.size {
		return failf(Corrupt, "the registry has %d bytes of the blob %s, which has %d", at+resp.ContentLength, l.blob, l.size)
	}
	// A registry without ranges sends again what is there already.
	if _, err := io.CopyN(io.Discard, resp.Body, d.size-at); err != nil {
		return shortBody(err)
	}
	buf := make([]byte, 256<<10)
	for d.size < l.size {
		n, err := resp.Body.Read(buf[:min(int64(len(buf)), l.size-d.size)])
		if n > 0 {
			if werr := d.write(buf[:n]); werr != nil {
				return fmt.Errorf("cannot keep what was fetched: %w", werr)
			}
			received(int64(n))
		}
		if err != nil && d.size < l.size {
			return shortBody(err)
		}
	}
	return nil
}

// shortBody is the error for a body that ended early.
func shortBody(err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return failf(Unavailable, "the registry sent only a part of the blob")
	}
	return err
}
