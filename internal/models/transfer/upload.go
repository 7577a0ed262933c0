// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// small is the size in bytes up to which a blob is sent in one request that cannot be resumed.
const small = 4 << 20

// opener opens a blob from a byte on. The result is an *os.File where it can be.
type opener func(offset int64) (io.ReadCloser, error)

// memory remembers where uploads go on after a kill.
type memory interface {
	get() string
	set(location string) error
}

// forgetful remembers nothing.
type forgetful struct{}

func (forgetful) get() string      { return "" }
func (forgetful) set(string) error { return nil }

// has reports whether the repository has a blob.
func (r *repository) has(ctx context.Context, d ocispec.Descriptor) (found bool, err error) {
	err = r.retry(ctx, func() (bool, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodHead, r.url("blobs/"+string(d.Digest)), nil)
		if err != nil {
			return false, permanent{err}
		}
		resp, err := r.do(req, http.StatusOK)
		if errors.Is(err, ErrNotFound) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		found = resp.ContentLength < 0 || resp.ContentLength == d.Size
		return false, resp.Body.Close()
	})
	return found, err
}

// start begins an upload, or mounts the blob from another repository of the registry, "" if none is known:
// then location is "".
func (r *repository) start(ctx context.Context, d ocispec.Descriptor, from string) (location string, err error) {
	err = r.retry(ctx, func() (bool, error) {
		u := r.url("blobs/uploads/")
		if from != "" {
			u += "?" + url.Values{"mount": {string(d.Digest)}, "from": {from}}.Encode()
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, u, nil)
		if err != nil {
			return false, permanent{err}
		}
		resp, err := r.do(req, http.StatusAccepted, http.StatusCreated)
		if err != nil {
			return false, err
		}
		defer resp.Body.Close()
		if resp.StatusCode == http.StatusCreated {
			location = ""
			return false, nil
		}
		location, err = r.location(resp)
		return false, err
	})
	return location, err
}

// location is where an upload goes on.
func (r *repository) location(resp *http.Response) (string, error) {
	base := resp.Request.URL
	l, err := base.Parse(resp.Header.Get("Location"))
	if err != nil || resp.Header.Get("Location") == "" {
		return "", permanent{fmt.Errorf("%s does not say where the upload goes on", r.RegistryStr())}
	}
	return l.String(), r.checkLocation(l)
}

// checkLocation refuses to leave TLS.
func (r *repository) checkLocation(l *url.URL) error {
	if l.Scheme != "https" && (l.Scheme != "http" || r.Scheme() != "http") {
		return permanent{fmt.Errorf("%s wants the blob at %s, which is not an https address", r.RegistryStr(), shorten(l.Redacted()))}
	}
	return nil
}

// status asks how much of an upload is there, and where it goes on.
func (r *repository) status(ctx context.Context, location string) (offset int64, next string, err error) {
	l, err := url.Parse(location)
	if err != nil {
		return 0, "", err
	}
	if err := r.checkLocation(l); err != nil {
		return 0, "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, location, nil)
	if err != nil {
		return 0, "", err
	}
	resp, err := r.do(req, http.StatusNoContent, http.StatusAccepted)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	if resp.Header.Get("Location") != "" {
		if location, err = r.location(resp); err != nil {
			return 0, "", err
		}
	}
	return received(resp), location, nil
}

// received is how many bytes an answer about an upload says that there are.
func received(resp *http.Response) int64 {
	var first, last int64
	// Range is 0-LAST, and 0-0 where nothing is there, too: then a byte is sent again.
	if _, err := fmt.Sscanf(resp.Header.Get("Range"), "%d-%d", &first, &last); err != nil || first != 0 || last <= 0 {
		return 0
	}
	return last + 1
}

// upload sends a blob that the repository does not have.
func (r *repository) upload(ctx context.Context, d ocispec.Descriptor, from string, open opener, m memory, sent func(int64)) error {
	location, offset := m.get(), int64(0)
	told := int64(0) // how much of it sent was told
	tell := func(at int64) { sent(at - told); told = at }
	if location != "" {
		var err error
		if offset, location, err = r.status(ctx, location); err != nil || offset > d.Size {
			location, offset = "", 0 // it was given up
		}
	}
	err := r.retry(ctx, func() (bool, error) {
		if location == "" {
			var err error
			if location, err = r.start(ctx, d, from); err != nil {
				return false, err
			}
			if location == "" { // mounted
				tell(d.Size)
				return true, nil
			}
			offset = 0
			if d.Size > small {
				if err := m.set(location); err != nil {
					return false, permanent{err}
				}
			}
		}
		tell(offset)
		before := offset
		err := r.send(ctx, d, &location, &offset, open, tell)
		if err == nil {
			tell(d.Size)
			return true, nil
		}
		var fatal permanent
		if errors.As(err, &fatal) || ctx.Err() != nil || !temporary(err) {
			return false, err
		}
		at, next, statusErr := r.status(ctx, location)
		if statusErr != nil || at > d.Size {
			location = ""
			return false, err
		}
		offset, location = at, next
		return offset > before, err
	})
	var refused *statusError
	if errors.As(err, &refused) && !temporary(err) { // the next push begins anew
		return errors.Join(err, m.set(""))
	}
	if err != nil {
		return err
	}
	return m.set("")
}

// send sends what is missing, and ends the upload.
func (r *repository) send(ctx context.Context, d ocispec.Descriptor, location *string, offset *int64, open opener, tell func(int64)) error {
	if d.Size > small && *offset < d.Size {
		resp, err := r.request(ctx, http.MethodPatch, *location, d, *offset, open, tell, http.StatusAccepted, http.StatusNoContent)
		if err != nil {
			return err
		}
		resp.Body.Close()
		if resp.Header.Get("Location") != "" {
			if *location, err = r.location(resp); err != nil {
				return err
			}
		}
		*offset = d.Size
	}
	u, err := url.Parse(*location)
	if err != nil {
		return permanent{err}
	}
	q := u.Query()
	q.Set("digest", string(d.Digest))
	u.RawQuery = q.Encode()
	resp, err := r.request(ctx, http.MethodPut, u.String(), d, *offset, open, tell, http.StatusCreated, http.StatusNoContent)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// request sends the blob's bytes from the offset on.
func (r *repository) request(ctx context.Context, method, location string, d ocispec.Descriptor, offset int64, open opener, tell func(int64), statuses ...int) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	req, err := http.NewRequestWithContext(ctx, method, location, nil)
	if err != nil {
		return nil, permanent{err}
	}
	if offset < d.Size {
		body, err := open(offset)
		if err != nil {
			return nil, permanent{err}
		}
		stop := watch(body, offset, tell, func() { cancel(errIdle) })
		defer stop()
		req.Body, req.ContentLength = body, d.Size-offset
		if f, ok := body.(*counted); ok && f.file != nil {
			req.Body = f.file // by itself, so that the kernel sends it
		}
	}
	req.Header.Set("Content-Type", "application/octet-stream")
	if offset > 0 && method == http.MethodPatch {
		req.Header.Set("Content-Range", fmt.Sprintf("%d-%d", offset, d.Size-1))
	}
	resp, err := r.do(req, statuses...)
	if err != nil && errors.Is(context.Cause(ctx), errIdle) {
		err = errIdle
	}
	return resp, err
}

// counted is a body that says how far it was read.
type counted struct {
	io.ReadCloser
	file *os.File

	mu sync.Mutex
	n  int64
}

// Read reads and counts.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.mu.Lock()
	c.n += int64(n)
	c.mu.Unlock()
	return n, err
}

// at is the offset in the blob.
func (c *counted) at(start int64) int64 {
	if c.file != nil {
		if at, err := c.file.Seek(0, io.SeekCurrent); err == nil {
			return at
		}
		return start
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return start + c.n
}

// fileBody is a file from a byte on.
func fileBody(f *os.File, offset int64) (io.ReadCloser, error) {
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		f.Close()
		return nil, err
	}
	return &counted{ReadCloser: f, file: f}, nil
}

// watch tells how far a body is, until stop is called, and calls stalled if it does not go on.
func watch(body io.ReadCloser, start int64, tell func(int64), stalled func()) (stop func()) {
	c, ok := body.(*counted)
	if !ok {
		return func() {}
	}
	const every = 100 * time.Millisecond
	done := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		last, quiet := start, time.Duration(0)
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
			}
			at := c.at(start)
			if at <= last {
				if quiet += every; quiet >= idle {
					stalled()
					return
				}
				continue
			}
			last, quiet = at, 0
			tell(at)
		}
	})
	return func() { close(done); wait.Wait() }
}
