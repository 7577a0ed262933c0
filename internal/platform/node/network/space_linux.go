// SPDX-License-Identifier: Apache-2.0

package network

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// podDevice is the name of a Pod's interface, as everywhere in Kubernetes.
const podDevice = "eth0"

// space is one network namespace with its address, held by its file.
type space struct {
	ip   netip.Addr
	file *os.File
}

// path opens the namespace from any thread of this process.
func (s *space) path() string { return pathOf(s.file) }

func pathOf(file *os.File) string {
	return "/proc/" + strconv.Itoa(os.Getpid()) + "/fd/" + strconv.Itoa(int(file.Fd()))
}

// newSpace makes a namespace with loopback and a veth to the bridge.
func (b *bridge) newSpace(ip netip.Addr) (*space, error) {
	s := &space{ip: ip}
	port := b.portName(ip)
	err := onThread(b.home, func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("cannot create network namespace: %w", err)
		}
		var err error
		if s.file, err = os.Open(threadNetns); err != nil {
			return fmt.Errorf("cannot open network namespace: %w", err)
		}
		return b.furnish(ip, port)
	})
	if err == nil {
		err = b.attach(port)
	}
	if err != nil {
		if s.file != nil {
			s.file.Close()
		}
		return nil, err
	}
	return s, nil
}

// furnish sets up the calling thread's new namespace: loopback, the Pod's end
// of a veth with the address, and the route to everything else.
func (b *bridge) furnish(ip netip.Addr, port string) error {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("cannot configure network namespace: %w", err)
	}
	defer h.Close()
	// Without IPv6 on the veth there is no duplicate address detection to wait for. ::1 stays.
	_ = os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0)
	// Any Pod may listen on port 80, whatever user it runs as, as in containers.
	_ = os.WriteFile("/proc/sys/net/ipv4/ip_unprivileged_port_start", []byte("0"), 0)

	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.HardwareAddr = podDevice, hardware(ip)
	veth := &netlink.Veth{LinkAttrs: attrs, PeerName: port, PeerNamespace: netlink.NsFd(b.hub.Fd())}
	if err := h.LinkAdd(veth); err != nil {
		return fmt.Errorf("cannot create veth %s: %w", port, err)
	}
	lo, err := h.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("cannot find loopback: %w", err)
	}
	subnet := &net.IPNet{IP: ip.AsSlice(), Mask: net.CIDRMask(b.plan.Pods.Bits(), 32)}
	steps := []func() error{
		func() error { return h.LinkSetUp(lo) },
		func() error { return h.AddrAdd(veth, &netlink.Addr{IPNet: subnet}) },
		func() error { return h.LinkSetUp(veth) },
		func() error {
			return h.RouteAdd(&netlink.Route{LinkIndex: veth.Index, Gw: b.plan.Gateway().AsSlice()})
		},
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("cannot configure address %s: %w", ip, err)
		}
	}
	return nil
}

// hardware is the MAC of a Pod IP: the same for every namespace that gets the
// address, so that neighbors' caches stay right.
func hardware(ip netip.Addr) net.HardwareAddr {
	b := ip.As4()
	return net.HardwareAddr{0x02, 0x42, b[0], b[1], b[2], b[3]}
}

// routes reads the routing table of a namespace, in the kernel's text.
func (b *bridge) routes(s *space) (text []byte, err error) {
	err = inNamespace(b.home, s.file, func() error {
		text, err = os.ReadFile("/proc/thread-self/net/route")
		return err
	})
	return text, err
}

// clean reports whether the last Pod left nothing in the namespace: no socket,
// not even one in TIME_WAIT that would keep a port, and no other route.
func (b *bridge) clean(s *space) (clean bool, err error) {
	err = inNamespace(b.home, s.file, func() error {
		v4, err4 := os.ReadFile("/proc/thread-self/net/sockstat")
		v6, err6 := os.ReadFile("/proc/thread-self/net/sockstat6")
		if errors.Is(err6, os.ErrNotExist) {
			err6 = nil
		}
		routes, errRoutes := os.ReadFile("/proc/thread-self/net/route")
		if err := errors.Join(err4, err6, errRoutes); err != nil {
			return err
		}
		clean = idle(v4) && idle(v6) && bytes.Equal(routes, b.pristine)
		return nil
	})
	return clean, err
}

// idle reads a sockstat file: no port of this namespace is taken. Other counts
// say nothing here: orphan, alloc and mem are of the whole machine, and used
// lags behind sockets that were closed.
func idle(sockstat []byte) bool {
	for line := range bytes.Lines(sockstat) {
		fields := bytes.Fields(line)
		for i := 1; i+1 < len(fields); i += 2 {
			switch string(fields[i]) {
			case "inuse", "tw":
				if string(fields[i+1]) != "0" {
					return false
				}
			}
		}
	}
	return true
}
