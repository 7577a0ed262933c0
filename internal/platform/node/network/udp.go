// SPDX-License-Identifier: Apache-2.0

package network

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	// udpIdle is how long a flow to a Service may be silent, as in conntrack.
	udpIdle = 2 * time.Minute
	// udpFlows bounds the clients of one front.
	udpFlows = 4096
	udpBytes = 64 << 10
)

// flows are the clients of one UDP front, each with a socket to its endpoint.
type flows struct {
	socket *net.UDPConn
	idle   time.Duration
	mu     sync.Mutex
	by     map[netip.AddrPort]net.Conn
}

// openUDP passes packets on until it is stopped or ctx is done.
func (f *forwarder) openUDP(ctx context.Context, at netip.AddrPort, b *balancer) (*listening, error) {
	listener, err := f.sockets.ListenPacket("udp4", at.String())
	if err != nil {
		return nil, fmt.Errorf("cannot listen: %w", err)
	}
	socket := listener.(*net.UDPConn)
	all := &flows{socket: socket, idle: f.udpIdle, by: map[netip.AddrPort]net.Conn{}}
	f.running.Go(func() {
		defer all.end()
		defer context.AfterFunc(ctx, func() { socket.Close() })()
		buf := make([]byte, udpBytes)
		for {
			n, client, err := socket.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			if to := f.flow(ctx, all, client, b); to != nil {
				to.SetReadDeadline(time.Now().Add(all.idle))
				to.Write(buf[:n])
			}
		}
	})
	return &listening{balance: b, stop: func() { socket.Close() }}, nil
}

// flow finds the client's socket, or opens one to the endpoint that is next.
func (f *forwarder) flow(ctx context.Context, all *flows, client netip.AddrPort, b *balancer) net.Conn {
	all.mu.Lock()
	defer all.mu.Unlock()
	if to, ok := all.by[client]; ok || len(all.by) >= udpFlows {
		return to
	}
	now := time.Now()
	order := b.candidates(client.Addr(), now)
	if len(order) == 0 {
		return nil
	}
	to, err := f.sockets.DialContext(ctx, "udp4", order[0].String())
	if err != nil {
		return nil
	}
	b.chose(client.Addr(), order[0], now)
	all.by[client] = to
	f.running.Go(func() { all.answer(client, to) })
	return to
}

// answer passes an endpoint's packets back until the flow is idle or refused.
func (f *flows) answer(client netip.AddrPort, from net.Conn) {
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.by, client)
		from.Close()
	}()
	buf := make([]byte, udpBytes)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		from.SetReadDeadline(time.Now().Add(f.idle))
		if _, err := f.socket.WriteToUDPAddrPort(buf[:n], client); err != nil {
			return
		}
	}
}

// end closes all flows.
func (f *flows) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, to := range f.by {
		to.Close()
	}
}
