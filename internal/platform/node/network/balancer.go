// SPDX-License-Identifier: Apache-2.0

package network

import (
	"net/netip"
	"slices"
	"sync"
	"time"
)

// balancer chooses the endpoint of each connection of one front.
type balancer struct {
	mu      sync.Mutex
	to      backends
	next    int
	clients map[netip.Addr]stuck // with affinity
	swept   time.Time
}

// stuck is the endpoint of a client and when it was last chosen.
type stuck struct {
	endpoint netip.AddrPort
	at       time.Time
}

func newBalancer(to backends) *balancer { return &balancer{to: to, clients: map[netip.Addr]stuck{}} }

// set changes the endpoints.
func (b *balancer) set(to backends) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.to = to
}

// candidates are the endpoints in the order in which a new connection of a
// client tries them.
func (b *balancer) candidates(client netip.Addr, now time.Time) []netip.AddrPort {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := len(b.to.endpoints)
	if n == 0 {
		return nil
	}
	order := make([]netip.AddrPort, 0, n)
	for i := range n {
		order = append(order, b.to.endpoints[(b.next+i)%n])
	}
	b.next = (b.next + 1) % n
	if b.to.affinity == 0 {
		return order
	}
	if s, ok := b.clients[client]; ok && now.Sub(s.at) < b.to.affinity {
		if i := slices.Index(order, s.endpoint); i > 0 {
			order[0], order[i] = order[i], order[0]
		}
	}
	return order
}

// chose remembers where a connection of a client went.
func (b *balancer) chose(client netip.Addr, endpoint netip.AddrPort, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.to.affinity == 0 {
		return
	}
	b.clients[client] = stuck{endpoint, now}
	if now.Sub(b.swept) < b.to.affinity {
		return
	}
	b.swept = now
	for c, s := range b.clients {
		if now.Sub(s.at) >= b.to.affinity {
			delete(b.clients, c)
		}
	}
}
