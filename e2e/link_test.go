// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
)

// link leads connections on to an address, unless it is cut.
type link struct {
	address string // where it listens

	mu    sync.Mutex
	isCut bool
	ends  map[net.Conn]bool // of the connections that it leads on
}

// newLink makes a link that lives as long as the test.
func newLink(t testing.TB, listen, to string) *link {
	t.Helper()
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		t.Fatal(err)
	}
	l := &link{address: listener.Addr().String(), ends: map[net.Conn]bool{}}
	ctx, stop := context.WithCancel(context.Background())
	var forwarding sync.WaitGroup
	forwarding.Go(func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			if !l.begin(in) {
				in.Close()
				continue
			}
			forwarding.Go(func() {
				defer l.end(in)
				forward(ctx, in, to)
			})
		}
	})
	t.Cleanup(func() {
		stop()
		listener.Close()
		forwarding.Wait()
	})
	return l
}

// cut ends all connections and refuses others, or accepts them again.
func (l *link) cut(is bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isCut = is
	for in := range l.ends {
		if is {
			in.Close()
		}
	}
}

func (l *link) begin(in net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.isCut {
		l.ends[in] = true
	}
	return !l.isCut
}

func (l *link) end(in net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.ends, in)
}

// forward passes a connection on until one of both ends closes it or ctx ends.
func forward(ctx context.Context, in net.Conn, to string) {
	defer in.Close()
	defer context.AfterFunc(ctx, func() { in.Close() })()
	out, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer out.Close()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			way[0].Close()
		})
	}
	both.Wait()
}
