// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/tls"
	"errors"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/go-logr/logr"
)

// connections tracks the open connections, including those that streams took
// over from the HTTP server, so that a stop closes them all.
type connections struct {
	mu     sync.Mutex
	open   map[*connection]struct{}
	closed bool
}

// connection is a client's connection that knows when the client is gone: a
// session that took it over has no other way to hear of it.
type connection struct {
	net.Conn
	all  *connections
	gone chan struct{}
	once sync.Once
}

type listener struct {
	net.Listener
	all *connections
}

func (c *connections) listen(l net.Listener) net.Listener { return &listener{l, c} }

func (l *listener) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	conn := &connection{Conn: raw, all: l.all, gone: make(chan struct{})}
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	if l.all.closed {
		raw.Close()
		return nil, net.ErrClosed
	}
	l.all.open[conn] = struct{}{}
	return conn, nil
}

func (c *connections) close() {
	c.mu.Lock()
	c.closed = true
	var open []*connection
	for conn := range c.open {
		open = append(open, conn)
	}
	c.mu.Unlock()
	for _, conn := range open {
		conn.Close()
	}
}

func (c *connection) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		c.lost()
	}
	return n, err
}

func (c *connection) Close() error {
	c.lost()
	c.all.mu.Lock()
	delete(c.all.open, c)
	c.all.mu.Unlock()
	return c.Conn.Close()
}

func (c *connection) lost() { c.once.Do(func() { close(c.gone) }) }

// goneKey finds a connection's gone channel in the context of its requests.
type goneKey struct{}

func connectionContext(ctx context.Context, conn net.Conn) context.Context {
	if t, ok := conn.(*tls.Conn); ok {
		if c, ok := t.NetConn().(*connection); ok {
			return context.WithValue(ctx, goneKey{}, c.gone)
		}
	}
	return ctx
}

// sessionContext is the request's context, which ends with the connection. The caller cancels it.
func (s *Server) sessionContext(r *http.Request) (*http.Request, context.CancelFunc) {
	ctx, cancel := context.WithCancel(r.Context())
	if gone, ok := ctx.Value(goneKey{}).(chan struct{}); ok {
		s.sessions.Go(func() {
			select {
			case <-gone:
				cancel()
			case <-ctx.Done():
			}
		})
	}
	return r.WithContext(ctx), cancel
}

// discardHandshakes keeps TLS handshake errors of unauthorized clients out of
// the log.
func discardHandshakes(l logr.Logger) *log.Logger {
	return log.New(writerFunc(func(p []byte) (int, error) {
		if text := string(p); !strings.Contains(text, "TLS handshake error") {
			l.Info("The kubelet server reported an error", "text", strings.TrimSpace(text))
		}
		return len(p), nil
	}), "", 0)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
