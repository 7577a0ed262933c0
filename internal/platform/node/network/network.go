// SPDX-License-Identifier: Apache-2.0

package network

import (
	"context"
	"net"
	"net/netip"
)

// HoldFile is the number of the file of a container that keeps Sandbox.Hold open.
const HoldFile = 5

// Network gives each Pod an address and, where the system allows it, a network
// namespace. Its methods may be called from several goroutines.
type Network interface {
	// Acquire returns the Pod's sandbox. It is idempotent: a Pod keeps its
	// sandbox until Release, with the same IP. A Pod with hostNetwork gets the
	// host's address and no namespace. It returns at once if the pool has a
	// ready namespace, otherwise it creates one (a few milliseconds).
	Acquire(ctx context.Context, podUID string, hostNetwork bool) (Sandbox, error)

	// Release gives the Pod's sandbox back. The caller guarantees that no
	// process of the Pod is left. An unknown UID is no error.
	Release(podUID string) error

	// Restore adopts the sandboxes that an earlier process of the same home had
	// assigned, by Pod UID. It is called once, before the first Acquire. Only
	// Sandbox.IP (and, for host network Pods, the lack of a namespace) is used;
	// Acquire then returns the Pod's sandbox with a valid NetnsPath. A Pod
	// without remaining processes gets a new namespace with the same IP.
	Restore(used map[string]Sandbox) error

	// Dial connects to a TCP port inside the Pod as if from the Pod itself
	// (its loopback first, then its IP), for port-forwarding.
	Dial(ctx context.Context, podUID string, port uint16) (net.Conn, error)

	// Dialable returns the address at which this process reaches the Pod IP ip,
	// by DialContext. It is ip itself, except on loopback addresses (see
	// Sandbox.Bind).
	Dialable(ip netip.Addr) netip.Addr

	// sockets reach Pods and cluster IPs, which may lie in another network
	// namespace, and everything that this process reaches anyway.
	sockets

	// HostIP is the node's address: what hostNetwork Pods report as podIP and
	// every Pod as hostIP.
	HostIP() netip.Addr

	// ClusterIPs reports whether cluster IPs are addresses of this machine that
	// Pods reach too: the Proxy then listens on them.
	ClusterIPs() bool

	// Shared returns why Pods share this machine's network, with a remedy;
	// nil if each has its own.
	Shared() error

	// Nameserver is the address to name in a Pod's resolv.conf, or the zero
	// Addr when the host's own resolv.conf works inside Pods.
	Nameserver() netip.Addr

	// Close removes what no Pod's process uses: namespaces, and the bridge when
	// none is left. Containers that outlive this process keep their network, and
	// Restore finds it.
	Close() error
}

// sockets opens sockets where their addresses are. An address is an IP and a port.
type sockets interface {
	// DialContext connects as net.Dialer does.
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
	// Listen listens as net.Listen does.
	Listen(network, address string) (net.Listener, error)
	// ListenPacket listens as net.ListenPacket does.
	ListenPacket(network, address string) (net.PacketConn, error)
}

// machine opens sockets in this process's own network.
type machine struct{}

func (machine) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, address)
}

func (machine) Listen(network, address string) (net.Listener, error) {
	return net.Listen(network, address)
}

func (machine) ListenPacket(network, address string) (net.PacketConn, error) {
	return net.ListenPacket(network, address)
}

// Sandbox is the network of one Pod.
type Sandbox struct {
	// IP is the Pod's address as the Kubernetes API shows it (status.podIP).
	IP netip.Addr `json:"ip"`

	// Bind is the address that programs of the Pod can listen on and that names
	// in its hosts file stand for. It equals IP in a namespace and on the host
	// network. On loopback addresses (no privileges) it is a 127.x.y.z, or
	// 127.0.0.1 where the system has only that one; IP is then a label that only
	// Diwan's own proxy understands, because EndpointSlices refuse loopback
	// addresses. The downward API should show Bind where it says status.podIP.
	Bind netip.Addr `json:"bind"`

	// NetnsPath opens the Pod's network namespace for setns(2); "" means that
	// the Pod runs in the node's own namespace. It is valid inside this process
	// while the sandbox is acquired, and not after a restart.
	NetnsPath string `json:"netnsPath,omitempty"`

	// Hold opens the namespace that connects the Pods, if it would disappear
	// with this process: a container keeps it open as file HoldFile. Valid as
	// long as NetnsPath.
	Hold string `json:"hold,omitempty"`
}
