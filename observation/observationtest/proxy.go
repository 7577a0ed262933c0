// SPDX-License-Identifier: Apache-2.0

package observationtest

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// proxy stands between a store and its server, and cuts connections.
type proxy struct {
	server   string
	listener net.Listener
	group    sync.WaitGroup
	cutting  atomic.Bool
	// unsent counts COMMITs that the server never got, unanswered those whose
	// answer the client never got.
	unsent, unanswered atomic.Int64
}

// startProxy starts a proxy of a server that ends with the test.
func startProxy(t *testing.T, server string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{server: server, listener: listener}
	p.group.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			p.group.Go(func() { p.serve(client) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		p.group.Wait()
	})
	return p
}

func (p *proxy) address() string { return p.listener.Addr().String() }

func (p *proxy) disturb(on bool) { p.cutting.Store(on) }

// serve carries one connection until it ends or is cut.
func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	defer server.Close()
	var deaf atomic.Bool // the client hears nothing any more
	answers := make(chan struct{})
	go func() {
		defer close(answers)
		defer client.Close()
		buffer := make([]byte, 64<<10)
		for {
			n, err := server.Read(buffer)
			if n > 0 && !deaf.Load() {
				_, _ = client.Write(buffer[:n])
			}
			if err != nil || n > 0 && deaf.Load() {
				return // and the server has done what it was asked for
			}
		}
	}()
	buffer := make([]byte, 64<<10)
	for {
		n, err := client.Read(buffer)
		if n > 0 && p.cutting.Load() {
			commit := bytes.Contains(buffer[:n], []byte("COMMIT"))
			switch fate := rand.IntN(10); {
			case commit && fate < 2:
				p.unsent.Add(1)
				server.Close()
				<-answers
				return
			case commit && fate < 4:
				p.unanswered.Add(1)
				deaf.Store(true)
			case !commit && fate == 0 && rand.IntN(5) == 0:
				server.Close()
				<-answers
				return
			}
		}
		if _, failed := io.Copy(server, bytes.NewReader(buffer[:n])); failed != nil || err != nil {
			server.Close()
			<-answers
			return
		}
	}
}
