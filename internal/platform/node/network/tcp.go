// SPDX-License-Identifier: Apache-2.0

package network

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// dialTimeout is how long an endpoint may take to accept before the next is tried.
const dialTimeout = 5 * time.Second

// forwarder passes connections and packets on, and knows when all have ended.
type forwarder struct {
	sockets sockets
	running sync.WaitGroup
	udpIdle time.Duration // how long a client's flow of packets may be silent
	log     logr.Logger
}

// openTCP accepts connections at an address until it is stopped. Connections
// that are open then continue until one side closes them or ctx is done.
func (f *forwarder) openTCP(ctx context.Context, at netip.AddrPort, b *balancer) (*listening, error) {
	l, err := f.sockets.Listen("tcp4", at.String())
	if err != nil {
		return nil, fmt.Errorf("cannot listen: %w", err)
	}
	f.accept(ctx, l, func(client *net.TCPConn) { f.forward(ctx, client, b) })
	return &listening{balance: b, stop: func() { l.Close() }}, nil
}

// accept handles the connections of a listener, each in its own goroutine.
func (f *forwarder) accept(ctx context.Context, l net.Listener, handle func(client *net.TCPConn)) {
	f.running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				if errors.Is(err, net.ErrClosed) {
					return
				}
				f.log.Info("Cannot accept a connection", "address", l.Addr().String(), "reason", err.Error())
				select {
				case <-ctx.Done():
					return
				case <-time.After(100 * time.Millisecond): // out of files, most likely
				}
				continue
			}
			f.running.Go(func() {
				defer conn.Close()
				handle(conn.(*net.TCPConn))
			})
		}
	})
}

// forward joins a client's connection to an endpoint.
func (f *forwarder) forward(ctx context.Context, client *net.TCPConn, b *balancer) {
	from := client.RemoteAddr().(*net.TCPAddr).AddrPort().Addr()
	var server *net.TCPConn
	for _, endpoint := range b.candidates(from, time.Now()) {
		within, cancel := context.WithTimeout(ctx, dialTimeout)
		conn, err := f.sockets.DialContext(within, "tcp4", endpoint.String())
		cancel()
		if err == nil {
			server = conn.(*net.TCPConn)
			b.chose(from, endpoint, time.Now())
			break
		}
	}
	if server == nil {
		client.SetLinger(0) // the client sees a reset, as if nobody listened
		return
	}
	join(ctx, client, server)
}

// join copies both ways until both directions have ended, one side fails or ctx is done.
func join(ctx context.Context, a, b *net.TCPConn) {
	end := func() { a.Close(); b.Close() }
	defer end()
	defer context.AfterFunc(ctx, end)()
	done := make(chan struct{})
	go func() {
		defer close(done)
		pipe(a, b, end)
	}()
	pipe(b, a, end)
	<-done
}

// pipe copies one direction, and passes its end on.
func pipe(to, from *net.TCPConn, end func()) {
	if _, err := io.Copy(to, from); err != nil {
		end()
		return
	}
	to.CloseWrite()
}
