// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// errIdle says that a registry stalled.
var errIdle = errors.New("the registry sent or took nothing for 2 minutes")

// open asks for a blob from a byte on. The result ends there if nothing comes for too long.
func (r *repository) open(ctx context.Context, d ocispec.Descriptor, offset int64) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url("blobs/"+string(d.Digest)), nil)
	if err != nil {
		cancel(nil)
		return nil, permanent{err}
	}
	if offset > 0 { // with its end, since there are registries that want one
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", offset, d.Size-1))
	}
	resp, err := r.do(req, http.StatusOK, http.StatusPartialContent)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	body := &watched{body: resp.Body, ctx: ctx, cancel: cancel}
	body.timer = time.AfterFunc(idle, func() { cancel(errIdle) })
	if offset == 0 || resp.StatusCode == http.StatusOK { // a registry without ranges sends all again
		if _, err := io.CopyN(io.Discard, body, offset); err != nil {
			body.Close()
			return nil, fmt.Errorf("cannot skip what is there: %w", err)
		}
		return body, nil
	}
	var at int64
	if _, err := fmt.Sscanf(resp.Header.Get("Content-Range"), "bytes %d-", &at); err != nil || at != offset {
		body.Close()
		return nil, permanent{fmt.Errorf("%s answers with the range %q instead of that from byte %d", r.RegistryStr(), shorten(resp.Header.Get("Content-Range")), offset)}
	}
	return body, nil
}

// watched is a body that is given up when nothing comes.
type watched struct {
	body   io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

// Read reads.
func (w *watched) Read(p []byte) (int, error) {
	w.timer.Reset(idle)
	n, err := w.body.Read(p)
	w.timer.Stop() // what the reader does meanwhile is not the registry's time
	if err != nil && err != io.EOF && w.ctx.Err() != nil {
		err = context.Cause(w.ctx)
	}
	return n, err
}

// Close closes the body.
func (w *watched) Close() error {
	w.timer.Stop()
	defer w.cancel(nil)
	return w.body.Close()
}

// download writes a blob from a byte on.
func (r *repository) download(ctx context.Context, d ocispec.Descriptor, to io.Writer, offset int64, received func(int64)) error {
	return r.retry(ctx, func() (bool, error) {
		start := offset
		body, err := r.open(ctx, d, offset)
		if err != nil {
			return false, err
		}
		defer body.Close()
		buffer := make([]byte, 512<<10)
		for offset < d.Size {
			n, err := body.Read(buffer[:min(int64(len(buffer)), d.Size-offset)])
			if n > 0 {
				if _, err := to.Write(buffer[:n]); err != nil {
					return false, permanent{err}
				}
				offset += int64(n)
				received(int64(n))
			}
			if err == io.EOF && offset < d.Size {
				err = io.ErrUnexpectedEOF
			}
			if err != nil && offset < d.Size {
				return offset > start, fmt.Errorf("%s sent only a part of the blob %s: %w", r.RegistryStr(), d.Digest, err)
			}
		}
		return true, nil
	})
}
