// SPDX-License-Identifier: Apache-2.0

package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
)

// loopback is the Network without namespaces: Pods share the host's network and
// differ by the loopback address that is meant for them.
type loopback struct {
	machine
	plan   Plan
	why    error // Pods do not have networks of their own
	host   netip.Addr
	many   bool // the system answers on all of 127.0.0.0/8
	mu     sync.Mutex
	given  map[string]Sandbox
	shares *addresses
}

func newLoopback(plan Plan) *loopback {
	return &loopback{
		plan:   plan,
		why:    errors.New("it was asked for"),
		host:   primaryIP(),
		many:   canBind(twin(plan.Gateway())),
		given:  map[string]Sandbox{},
		shares: newAddresses(plan),
	}
}

// twin is the loopback address that stands for a Pod IP: 127 in place of its first byte.
func twin(ip netip.Addr) netip.Addr {
	b := ip.As4()
	b[0] = 127
	return netip.AddrFrom4(b)
}

func canBind(ip netip.Addr) bool {
	l, err := net.Listen("tcp4", netip.AddrPortFrom(ip, 0).String())
	if err != nil {
		return false
	}
	l.Close()
	return true
}

var localhost = netip.AddrFrom4([4]byte{127, 0, 0, 1})

func (l *loopback) Acquire(_ context.Context, podUID string, hostNetwork bool) (Sandbox, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s, ok := l.given[podUID]; ok {
		return s, nil
	}
	s := Sandbox{IP: l.host, Bind: l.host}
	if !hostNetwork {
		ip, err := l.shares.take()
		if err != nil {
			return Sandbox{}, err
		}
		s = Sandbox{IP: ip, Bind: l.Dialable(ip)}
	}
	l.given[podUID] = s
	return s, nil
}

func (l *loopback) Release(podUID string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shares.release(l.given[podUID].IP)
	delete(l.given, podUID)
	return nil
}

func (l *loopback) Restore(used map[string]Sandbox) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for uid, s := range used {
		if l.plan.Pods.Contains(s.IP) {
			l.shares.claim(s.IP)
			s = Sandbox{IP: s.IP, Bind: l.Dialable(s.IP)}
		} else {
			s = Sandbox{IP: l.host, Bind: l.host}
		}
		l.given[uid] = s
	}
	return nil
}

func (l *loopback) Dial(ctx context.Context, podUID string, port uint16) (net.Conn, error) {
	l.mu.Lock()
	s, ok := l.given[podUID]
	l.mu.Unlock()
	if !ok {
		return nil, fmt.Errorf("cannot dial port %d: Pod %s has no network", port, podUID)
	}
	return dialFirst(ctx, port, s.Bind, localhost)
}

func (l *loopback) Dialable(ip netip.Addr) netip.Addr {
	switch {
	case !l.plan.Pods.Contains(ip):
		return ip
	case l.many:
		return twin(ip)
	default:
		return localhost
	}
}

func (l *loopback) Shared() error          { return l.why }
func (l *loopback) HostIP() netip.Addr     { return l.host }
func (l *loopback) ClusterIPs() bool       { return false }
func (l *loopback) Nameserver() netip.Addr { return netip.Addr{} }
func (l *loopback) Close() error           { return nil }

// dialFirst connects to the first of the addresses that accepts.
func dialFirst(ctx context.Context, port uint16, addresses ...netip.Addr) (net.Conn, error) {
	var dialer net.Dialer
	var first error
	for _, ip := range addresses {
		conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(ip.String(), strconv.Itoa(int(port))))
		if err == nil {
			return conn, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, fmt.Errorf("cannot dial port %d in the Pod: %w", port, first)
}

// primaryIP is the address from which the machine speaks to the outside, or one
// of its others, or 127.0.0.1 on a machine without a network. No packet is sent.
func primaryIP() netip.Addr {
	if conn, err := net.Dial("udp4", "192.0.2.1:9"); err == nil {
		defer conn.Close()
		if ip, ok := ipv4(conn.LocalAddr()); ok && !ip.IsLoopback() {
			return ip
		}
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return localhost
	}
	for _, a := range all {
		if ip, ok := ipv4(a); ok && ip.IsGlobalUnicast() {
			return ip
		}
	}
	return localhost
}

func ipv4(a net.Addr) (netip.Addr, bool) {
	var ip net.IP
	switch a := a.(type) {
	case *net.UDPAddr:
		ip = a.IP
	case *net.IPNet:
		ip = a.IP
	}
	addr, ok := netip.AddrFromSlice(ip.To4())
	return addr, ok
}
