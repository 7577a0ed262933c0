// SPDX-License-Identifier: Apache-2.0

package laptop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"k8s.io/client-go/rest"
)

// inProcess carries requests of the cluster's own parts to the API server
// without a connection between: no TLS, no frames, no system calls. It calls
// the same handler, with authentication, authorization and admission, that
// serves the port.
type inProcess struct {
	handler http.Handler
}

// config is a way in for the holder of a bearer token.
func (p inProcess) config(token, agent string) *rest.Config {
	return &rest.Config{
		Host:        "https://kubernetes.default.svc",
		Transport:   p,
		BearerToken: token,
		UserAgent:   agent,
		// What the API server warns of about our own objects, it does for each.
		WarningHandler: rest.NoWarnings{},
		QPS:            -1,
	}
}

// RoundTrip implements http.RoundTripper. Requests that change the protocol,
// as exec and port-forward do, need the port.
func (p inProcess) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Header.Get("Upgrade") != "" {
		return nil, errors.New("cannot change the protocol of a request within the process")
	}
	ctx, cancel := context.WithCancel(req.Context())
	served := req.Clone(ctx)
	served.RequestURI = req.URL.RequestURI()
	served.RemoteAddr = "127.0.0.1:0"
	served.Proto, served.ProtoMajor, served.ProtoMinor = "HTTP/2.0", 2, 0
	if served.Body == nil {
		served.Body = http.NoBody
	}
	if served.Host == "" {
		served.Host = req.URL.Host
	}
	w := &answer{header: http.Header{}, begun: make(chan struct{}), cancel: cancel}
	w.more.L = &w.mu
	go func() {
		defer func() {
			switch reason := recover(); {
			case reason != nil:
				w.end(fmt.Errorf("the API server gave up on the request: %v", reason))
			case req.Context().Err() != nil:
				w.end(context.Cause(req.Context())) // not the end of the data
			default:
				w.end(io.EOF)
			}
		}()
		p.handler.ServeHTTP(w, served)
	}()
	select {
	case <-w.begun:
	case <-ctx.Done():
		cancel()
		return nil, context.Cause(ctx)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.status == 0 {
		cancel()
		return nil, w.err
	}
	stop := context.AfterFunc(req.Context(), func() { w.end(context.Cause(req.Context())) })
	w.onClose = func() { stop() }
	return &http.Response{
		Status:        http.StatusText(w.status),
		StatusCode:    w.status,
		Proto:         served.Proto,
		ProtoMajor:    2,
		Header:        w.sent,
		Body:          w,
		ContentLength: -1,
		Request:       req,
	}, nil
}

// answer is both ends of a response: the server's http.ResponseWriter and the
// client's body. A client that reads slowly is not waited for; what it has not
// read is kept, as it would be in a socket's buffers, but without their bound,
// which the server's own bound on a watcher's backlog makes safe.
type answer struct {
	header http.Header

	mu      sync.Mutex
	more    sync.Cond
	sent    http.Header
	status  int
	data    bytes.Buffer
	err     error // why there will be no more data
	begun   chan struct{}
	started bool
	cancel  context.CancelFunc
	onClose func()
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.writeHeader(status)
}

func (a *answer) writeHeader(status int) {
	if a.status != 0 || status < http.StatusOK {
		return
	}
	a.status, a.sent = status, a.header.Clone()
}

// begin lets the client have the response.
func (a *answer) begin() {
	if !a.started {
		a.started = true
		close(a.begun)
	}
}

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil {
		return 0, a.err
	}
	a.writeHeader(http.StatusOK)
	a.data.Write(p)
	a.more.Signal()
	return len(p), nil
}

// Flush implements http.Flusher: a response is handed over when it is
// complete, or when the server wants its beginning to be seen.
func (a *answer) Flush() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.writeHeader(http.StatusOK)
	a.begin()
}

// CloseNotify implements http.CloseNotifier, which the API server looks for to
// know a response that can be flushed. It listens to the request's context.
func (a *answer) CloseNotify() <-chan bool { return make(chan bool) }

// end says that there is no more.
func (a *answer) end(reason error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err == nil {
		a.err = reason
		if errors.Is(reason, io.EOF) {
			a.writeHeader(http.StatusOK)
		}
	}
	a.begin()
	a.more.Broadcast()
}

// Read implements io.Reader for the client.
func (a *answer) Read(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.data.Len() == 0 && a.err == nil {
		a.more.Wait()
	}
	if a.data.Len() > 0 {
		return a.data.Read(p)
	}
	return 0, a.err
}

// Close implements io.Closer for the client: the server learns that nobody
// listens any more.
func (a *answer) Close() error {
	a.onClose()
	a.cancel()
	a.end(http.ErrBodyReadAfterClose)
	return nil
}
