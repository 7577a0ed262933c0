// SPDX-License-Identifier: Apache-2.0

package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/go-logr/logr"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// bridgePrefix begins the names of all bridges of Diwan; the plan's ID follows.
const bridgePrefix = "diwan-"

// bridge is the device that connects the Pods of one home, and this machine's
// own end of it: the gateway address and the cluster IPs.
type bridge struct {
	plan     Plan
	home     *os.File // the network namespace of this process; nil where threads that leave it cannot come back
	hub      *os.File // the network namespace of the bridge: home for root, else one beside it
	link     *netlink.Bridge
	host     *netlink.Handle
	owner    net.Listener // the mark that this bridge has a living owner
	pristine []byte       // the routing table of an unused namespace
	log      logr.Logger
}

// openBridge makes the home's bridge, or takes over the one that a killed
// process left. Root's is in this process's network namespace.
func openBridge(plan Plan, log logr.Logger) (_ *bridge, err error) {
	b := &bridge{plan: plan, log: log}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	if err = b.openHub(); err != nil {
		return nil, err
	}
	if err = b.inHub(func() error {
		b.host, err = netlink.NewHandle(unix.NETLINK_ROUTE)
		return err
	}); err != nil {
		return nil, fmt.Errorf("cannot configure network: %w", err)
	}
	if b.owner, err = own(plan.ID); err != nil {
		return nil, fmt.Errorf("cannot own network %s%s: another process of this home has it: %w", bridgePrefix, plan.ID, err)
	}
	if err = b.build(); err != nil {
		return nil, err
	}
	return b, nil
}

// own takes the name of a network for the life of this process, in the
// namespace of abstract sockets, which needs no files and no cleaning.
func own(id string) (net.Listener, error) {
	return net.Listen("unix", "@diwan/network/"+id)
}

// build makes the bridge with its address, and routes the cluster IPs to this machine.
func (b *bridge) build() error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = bridgePrefix + b.plan.ID
	// A fixed address: a bridge without one takes that of a port, and changes it when the port goes.
	attrs.HardwareAddr = hardware(b.plan.Gateway())
	b.link = &netlink.Bridge{LinkAttrs: attrs}
	err := b.host.LinkAdd(b.link)
	if errors.Is(err, unix.EEXIST) {
		var link netlink.Link
		if link, err = b.host.LinkByName(attrs.Name); err == nil {
			b.link.LinkAttrs = *link.Attrs()
		}
	}
	if err != nil {
		return fmt.Errorf("cannot make bridge %s: %w", attrs.Name, err)
	}
	mask := net.CIDRMask(b.plan.Pods.Bits(), 32)
	gateway := &netlink.Addr{IPNet: &net.IPNet{IP: b.plan.Gateway().AsSlice(), Mask: mask}}
	if err := b.host.AddrReplace(b.link, gateway); err != nil {
		return fmt.Errorf("cannot address bridge %s: %w", attrs.Name, err)
	}
	if err := b.host.LinkSetUp(b.link); err != nil {
		return fmt.Errorf("cannot start bridge %s: %w", attrs.Name, err)
	}
	if err := b.host.RouteReplace(b.serviceRoute()); err != nil {
		return fmt.Errorf("cannot route cluster IPs %s: %w", b.plan.Services, err)
	}
	return nil
}

// serviceRoute makes every cluster IP an address of this machine, on which the
// Proxy can listen. It goes with the bridge.
func (b *bridge) serviceRoute() *netlink.Route {
	p := b.plan.Services.Masked()
	return &netlink.Route{
		LinkIndex: b.link.Index,
		Dst:       &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), 32)},
		Type:      unix.RTN_LOCAL,
		Table:     unix.RT_TABLE_LOCAL,
		Scope:     netlink.SCOPE_HOST,
		Protocol:  unix.RTPROT_STATIC,
	}
}

// portName is the name of the host's end of a Pod's veth: the network's ID and
// the address's last ten bits.
func (b *bridge) portName(ip netip.Addr) string {
	a := ip.As4()
	return fmt.Sprintf("dw%s-%d", b.plan.ID, int(a[2]&3)<<8|int(a[3]))
}

// attach connects the host's end of a veth to the bridge.
func (b *bridge) attach(port string) error {
	link, err := b.host.LinkByName(port)
	if err != nil {
		return fmt.Errorf("cannot find veth %s: %w", port, err)
	}
	if err := b.host.LinkSetMasterByIndex(link, b.link.Index); err != nil {
		return fmt.Errorf("cannot connect veth %s to the bridge: %w", port, err)
	}
	if err := b.host.LinkSetUp(link); err != nil {
		return fmt.Errorf("cannot start veth %s: %w", port, err)
	}
	return nil
}

// detach removes the host's end of a veth, and so both; one that is not there is no error.
func (b *bridge) detach(port string) error {
	link, err := b.host.LinkByName(port)
	if err == nil {
		err = b.host.LinkDel(link)
	}
	if err != nil && !gone(err) {
		return fmt.Errorf("cannot remove veth %s: %w", port, err)
	}
	return nil
}

// remove takes the bridge away, and with it its address and routes. A namespace
// beside this process's goes as a whole.
func (b *bridge) remove() error {
	if b.beside() {
		return nil
	}
	if err := b.host.LinkDel(b.link); err != nil && !gone(err) {
		return fmt.Errorf("cannot remove bridge %s: %w", b.link.Name, err)
	}
	return removeTable(b.plan.ID)
}

// gone reports whether an error says that a device is not there.
func gone(err error) bool {
	return errors.As(err, &netlink.LinkNotFoundError{}) || errors.Is(err, unix.ENODEV)
}

func (b *bridge) close() {
	if b.owner != nil {
		b.owner.Close()
	}
	if b.host != nil {
		b.host.Close()
	}
	for _, file := range []*os.File{b.hub, b.home} {
		if file != nil {
			file.Close()
		}
	}
}

// sweep removes the bridges of other homes whose owner is dead and whose last
// Pod is gone.
func (b *bridge) sweep() error {
	links, err := list(b.host.LinkList)
	if err != nil {
		return fmt.Errorf("cannot list network devices: %w", err)
	}
	ports := map[int]int{}
	for _, l := range links {
		ports[l.Attrs().MasterIndex]++
	}
	for _, l := range links {
		id, ours := strings.CutPrefix(l.Attrs().Name, bridgePrefix)
		if !ours || l.Type() != "bridge" || id == b.plan.ID || ports[l.Attrs().Index] > 0 {
			continue
		}
		mark, err := own(id)
		if err != nil {
			continue // its owner lives
		}
		err = errors.Join(b.host.LinkDel(l), removeTable(id))
		mark.Close()
		if err != nil {
			return fmt.Errorf("cannot remove the abandoned bridge %s: %w", l.Attrs().Name, err)
		}
	}
	return nil
}

// list asks the kernel for a list again while it says that the list changed
// as it was being read.
func list[T any](ask func() ([]T, error)) (all []T, err error) {
	const attempts = 20
	for range attempts {
		if all, err = ask(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	return all, err
}

// hostPrefixes are the subnets to which this machine has routes.
func hostPrefixes() []netip.Prefix {
	routes, err := list(func() ([]netlink.Route, error) { return netlink.RouteList(nil, netlink.FAMILY_V4) })
	if err != nil {
		return nil
	}
	var prefixes []netip.Prefix
	for _, r := range routes {
		if r.Dst == nil {
			continue
		}
		ip, ok := netip.AddrFromSlice(r.Dst.IP.To4())
		if bits, _ := r.Dst.Mask.Size(); ok && bits >= 8 {
			prefixes = append(prefixes, netip.PrefixFrom(ip, bits))
		}
	}
	return prefixes
}
