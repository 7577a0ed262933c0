// SPDX-License-Identifier: Apache-2.0

package network

import (
	"context"
	"net"
	"net/netip"
)

// inside reports whether an address lies in the bridge's network namespace, where
// that is not this process's.
func (b *bridge) inside(address string) (at netip.AddrPort, inside bool) {
	at, err := netip.ParseAddrPort(address)
	return at, err == nil && b.beside() && (b.plan.Pods.Contains(at.Addr()) || b.plan.Services.Contains(at.Addr()))
}

// DialContext connects from the machine's end of the bridge to Pods and cluster
// IPs. At the gateway the machine's own programs answer too, as they do Pods.
func (n *namespaces) DialContext(ctx context.Context, network, address string) (conn net.Conn, err error) {
	at, inside := n.bridge.inside(address)
	if !inside {
		return machine{}.DialContext(ctx, network, address)
	}
	err = n.bridge.inHub(func() error {
		conn, err = machine{}.DialContext(ctx, network, address)
		return err
	})
	if err != nil && at.Addr() == n.HostIP() {
		return machine{}.DialContext(ctx, network, netip.AddrPortFrom(localhost, at.Port()).String())
	}
	return conn, err
}

// Listen listens at the bridge where the address is there.
func (n *namespaces) Listen(network, address string) (l net.Listener, err error) {
	err = n.at(address, func() error {
		l, err = net.Listen(network, address)
		return err
	})
	return l, err
}

// ListenPacket listens at the bridge where the address is there.
func (n *namespaces) ListenPacket(network, address string) (c net.PacketConn, err error) {
	err = n.at(address, func() error {
		c, err = net.ListenPacket(network, address)
		return err
	})
	return c, err
}

// at runs f where the address is.
func (n *namespaces) at(address string, f func() error) error {
	if _, inside := n.bridge.inside(address); inside {
		return n.bridge.inHub(f)
	}
	return f()
}
