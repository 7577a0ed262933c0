// SPDX-License-Identifier: Apache-2.0

package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/platform/node/rootless"
)

// namespaces is the Network in which each Pod has its own namespace.
type namespaces struct {
	cfg    Config
	bridge *bridge
	relay  *relay // nil when Pods reach the machine's nameservers themselves
	exit   *exit  // carries what leaves the bridge; nil where the kernel does

	mu        sync.Mutex
	addresses *addresses
	used      map[string]*space // by Pod UID; nil for the host's network
	ready     []*space          // the one that rested longest first
	closed    bool

	wake   chan struct{} // tells the filler that ready may be short
	filled sync.WaitGroup
}

func newNamespaces(cfg Config) (Network, error) {
	if unix.Geteuid() != 0 {
		if err := rootless.Allowed(); err != nil {
			return nil, err
		}
		return nil, errUnsupported
	}
	b, err := openBridge(cfg.Plan, cfg.Log)
	if err != nil {
		return nil, err
	}
	n := &namespaces{
		cfg:       cfg,
		bridge:    b,
		addresses: newAddresses(cfg.Plan),
		used:      map[string]*space{},
		wake:      make(chan struct{}, 1),
	}
	if err := n.begin(); err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

// begin tries a first namespace, for only that shows that the system allows
// them, and starts the filler. The filler makes nothing before the first Acquire
// or Restore, so that Restore finds the addresses of its Pods free.
func (n *namespaces) begin() error {
	if err := n.bridge.sweep(); err != nil {
		n.bridge.log.Info("Cannot remove the networks of earlier clusters", "reason", err.Error())
	}
	outside := n.open()
	if outside != nil {
		n.bridge.log.Info("Pods can reach each other and this machine, but nothing outside it", "reason", outside.Error())
	}
	n.relay = relayNames(n, n.HostIP(), outside == nil && n.exit == nil, n.bridge.log)
	first, err := n.create()
	if err != nil {
		return err
	}
	if n.bridge.pristine, err = n.bridge.routes(first); err != nil {
		first.file.Close()
		return fmt.Errorf("cannot read routes of a namespace: %w", err)
	}
	n.ready = append(n.ready, first)
	n.filled.Add(1)
	go n.fill()
	return nil
}

// open connects the Pods with everything beyond the bridge.
func (n *namespaces) open() (err error) {
	if n.bridge.beside() {
		n.exit, err = n.bridge.openExit()
		return err
	}
	return n.bridge.masquerade()
}

func (n *namespaces) Acquire(_ context.Context, podUID string, hostNetwork bool) (Sandbox, error) {
	n.mu.Lock()
	s, known := n.used[podUID]
	if !known && hostNetwork {
		n.used[podUID] = nil
		known = true
	}
	if !known && len(n.ready) > 0 {
		s, n.ready = n.ready[0], n.ready[1:]
		n.used[podUID] = s
		known = true
	}
	n.mu.Unlock()
	defer n.notify()
	if known {
		return n.sandbox(s), nil
	}
	s, err := n.create()
	if err != nil {
		return Sandbox{}, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if other, ok := n.used[podUID]; ok { // a second call for the same Pod was faster
		n.ready = append(n.ready, s)
		s = other
	}
	n.used[podUID] = s
	return n.sandbox(s), nil
}

func (n *namespaces) sandbox(s *space) Sandbox {
	switch {
	case n.bridge.beside() && s == nil: // the gateway is no address of the machine's
		return Sandbox{IP: n.HostIP(), Bind: localhost}
	case s == nil:
		return Sandbox{IP: n.HostIP(), Bind: n.HostIP()}
	case n.bridge.beside():
		return Sandbox{IP: s.ip, Bind: s.ip, NetnsPath: s.path(), Hold: pathOf(n.bridge.hub)}
	}
	return Sandbox{IP: s.ip, Bind: s.ip, NetnsPath: s.path()}
}

func (n *namespaces) Release(podUID string) error {
	n.mu.Lock()
	s := n.used[podUID]
	delete(n.used, podUID)
	n.mu.Unlock()
	if s == nil {
		return nil
	}
	clean, err := n.bridge.clean(s)
	if err != nil {
		err = fmt.Errorf("cannot inspect the network of Pod %s: %w", podUID, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if clean && !n.closed && len(n.ready) < n.cfg.Idle {
		n.ready = append(n.ready, s)
		return err
	}
	n.discard(s)
	return err
}

// create makes a space with the next address that is free. A veth of that name may
// still be on its way out; then the next address is tried.
func (n *namespaces) create() (*space, error) {
	const attempts = 64
	var err error
	for range attempts {
		n.mu.Lock()
		var ip netip.Addr
		ip, err = n.addresses.take()
		n.mu.Unlock()
		if err != nil {
			return nil, err
		}
		var s *space
		if s, err = n.bridge.newSpace(ip); err == nil {
			return s, nil
		}
		n.mu.Lock()
		n.addresses.release(ip)
		n.mu.Unlock()
		if !errors.Is(err, unix.EEXIST) {
			break
		}
	}
	return nil, fmt.Errorf("cannot connect a Pod: %w", err)
}

// discard lets a space go; the kernel removes it with its veth. n.mu is held.
func (n *namespaces) discard(s *space) {
	s.file.Close()
	n.addresses.release(s.ip)
}

func (n *namespaces) notify() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// fill keeps the spare spaces ready until wake is closed.
func (n *namespaces) fill() {
	defer n.filled.Done()
	for range n.wake {
		for n.short() {
			s, err := n.create()
			if err != nil {
				n.bridge.log.Info("No spare network namespace", "reason", err.Error())
				break
			}
			n.mu.Lock()
			n.ready = append(n.ready, s)
			n.mu.Unlock()
		}
	}
}

func (n *namespaces) short() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.closed && len(n.ready) < n.cfg.Spare
}

func (n *namespaces) Dial(ctx context.Context, podUID string, port uint16) (net.Conn, error) {
	n.mu.Lock()
	s, ok := n.used[podUID]
	n.mu.Unlock()
	if !ok {
		return nil, fmt.Errorf("cannot dial port %d: Pod %s has no network", port, podUID)
	}
	if s == nil {
		return dialFirst(ctx, port, localhost, n.HostIP())
	}
	var conn net.Conn
	err := inNamespace(n.bridge.home, s.file, func() (err error) {
		conn, err = dialFirst(ctx, port, localhost, netip.IPv6Loopback(), s.ip)
		return err
	})
	return conn, err
}

func (n *namespaces) Dialable(ip netip.Addr) netip.Addr { return ip }
func (n *namespaces) Shared() error                     { return nil }
func (n *namespaces) HostIP() netip.Addr                { return n.cfg.Plan.Gateway() }
func (n *namespaces) ClusterIPs() bool                  { return true }

func (n *namespaces) Nameserver() netip.Addr {
	if n.relay == nil {
		return netip.Addr{}
	}
	return n.HostIP()
}

func (n *namespaces) Close() error {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return nil
	}
	n.closed = true
	n.mu.Unlock()
	close(n.wake)
	n.filled.Wait()
	if n.relay != nil {
		n.relay.close()
	}
	if n.exit != nil {
		n.exit.close()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range n.ready {
		n.discard(s)
	}
	n.ready = nil
	for _, s := range n.used {
		if s != nil {
			s.file.Close()
		}
	}
	living, err := n.bridge.find()
	for _, s := range living {
		s.file.Close()
	}
	if err == nil && len(living) == 0 {
		err = n.bridge.remove()
	}
	n.bridge.close()
	return err
}
