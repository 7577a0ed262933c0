// SPDX-License-Identifier: Apache-2.0

package network

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

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
	owner    *os.File // the lock that says that this bridge has a living owner
	pristine []byte   // the routing table of an unused namespace
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
	if b.owner, err = ownSoon(plan.Home); err != nil {
		return nil, fmt.Errorf("cannot acquire network %s%s of %s: %w", bridgePrefix, plan.ID, plan.Home, err)
	}
	if err = b.build(); err != nil {
		return nil, err
	}
	return b, nil
}

// errOwned says that a living process has the network of a home.
var errOwned = errors.New("another process owns it")

// own acquires the network of a home, as long as the file is open, with a lock
// on the plan: only those who may read the home can.
func own(home string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(home, planFile), os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = errOwned
		}
		return nil, err
	}
	return file, nil
}

// patience is how long an owner waits for those who have the lock for an instant:
// another home's sweep, and a child that an earlier owner was just starting when
// it was killed.
const patience = 5 * time.Second

func ownSoon(home string) (*os.File, error) {
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		file, err := own(home)
		if !errors.Is(err, errOwned) || time.Now().After(deadline) {
			return file, err
		}
	}
}

// aliasSize is more than the length of a device's alias, IFALIASZ.
const aliasSize = 256

// build makes the bridge with its address and, as its alias, the home, and routes the cluster IPs to this machine.
func (b *bridge) build() error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = bridgePrefix + b.plan.ID
	// A fixed MAC address: a bridge without one takes that of a port, and changes it when the port
	// is removed.
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
		return fmt.Errorf("cannot create bridge %s: %w", attrs.Name, err)
	}
	if len(b.plan.Home) < aliasSize {
		if err := b.host.LinkSetAlias(b.link, b.plan.Home); err != nil {
			return fmt.Errorf("cannot record the home of bridge %s: %w", attrs.Name, err)
		}
	}
	mask := net.CIDRMask(b.plan.Pods.Bits(), 32)
	gateway := &netlink.Addr{IPNet: &net.IPNet{IP: b.plan.Gateway().AsSlice(), Mask: mask}}
	if err := b.host.AddrReplace(b.link, gateway); err != nil {
		return fmt.Errorf("cannot set the address of bridge %s: %w", attrs.Name, err)
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
// Pod is gone. The bridge of a living owner has ports, but while it is being opened
// and closed, when its owner holds the lock.
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
		home := l.Attrs().Alias
		if !ours || l.Type() != "bridge" || id == b.plan.ID || home == "" || ports[l.Attrs().Index] > 0 {
			continue
		}
		mark, err := own(home)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			continue // its owner lives
		}
		err = errors.Join(b.host.LinkDel(l), removeTable(id))
		mark.Close() // nil where the home is gone, too
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
