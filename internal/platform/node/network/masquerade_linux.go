// SPDX-License-Identifier: Apache-2.0

package network

import (
	"fmt"
	"net/netip"
	"os"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

func tableName(id string) string { return bridgePrefix + id }

// masquerade lets Pods reach the outside with this machine's address, through
// one nftables table that goes with the bridge:
//
//	table ip diwan-ID {
//		chain postrouting {
//			type nat hook postrouting priority srcnat;
//			ip saddr PODS oifname != "diwan-ID" oifname != "lo" masquerade
//		}
//		chain forward {
//			type filter hook forward priority filter;
//			iifname != "diwan-ID" oifname "diwan-ID" ct state != established,related drop
//		}
//	}
//
// The second chain keeps other machines out, since forwarding between the
// bridge and the default route's device has to be switched on.
func (b *bridge) masquerade() error {
	conn, table, err := newTable(b.plan.ID)
	if err != nil {
		return err
	}
	out := conn.AddChain(&nftables.Chain{
		Name: "postrouting", Table: table, Type: nftables.ChainTypeNAT,
		Hooknum: nftables.ChainHookPostrouting, Priority: nftables.ChainPriorityNATSource,
	})
	conn.AddRule(&nftables.Rule{Table: table, Chain: out, Exprs: append(append(append(
		b.fromPods(), b.device(expr.MetaKeyOIFNAME, expr.CmpOpNeq)...),
		device(expr.MetaKeyOIFNAME, expr.CmpOpNeq, "lo")...), // this machine's own programs
		&expr.Masq{})})
	in := conn.AddChain(&nftables.Chain{
		Name: "forward", Table: table, Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookForward, Priority: nftables.ChainPriorityFilter,
	})
	conn.AddRule(&nftables.Rule{Table: table, Chain: in, Exprs: append(append(append(
		b.device(expr.MetaKeyIIFNAME, expr.CmpOpNeq), b.device(expr.MetaKeyOIFNAME, expr.CmpOpEq)...),
		unrelated()...),
		&expr.Verdict{Kind: expr.VerdictDrop})})
	if err := conn.Flush(); err != nil {
		return fmt.Errorf("cannot add nftables rules: %w", err)
	}
	return b.forward()
}

// fromPods matches packets with a source in the Pods' subnet.
func (b *bridge) fromPods() []expr.Any { return address(12, b.plan.Pods, expr.CmpOpEq) }

// address matches packets by an address at an offset of their IPv4 header.
func address(offset uint32, p netip.Prefix, op expr.CmpOp) []expr.Any {
	p = p.Masked()
	mask := binaryutil.BigEndian.PutUint32(^uint32(0) << (32 - p.Bits()))
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: 4},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: mask, Xor: make([]byte, 4)},
		&expr.Cmp{Op: op, Register: 1, Data: p.Addr().AsSlice()},
	}
}

// device matches packets that come from or go to the bridge, or do not.
func (b *bridge) device(key expr.MetaKey, op expr.CmpOp) []expr.Any {
	return device(key, op, b.link.Name)
}

// device matches packets that come from or go to a device, or do not.
func device(key expr.MetaKey, op expr.CmpOp, name string) []expr.Any {
	padded := make([]byte, unix.IFNAMSIZ)
	copy(padded, name)
	return []expr.Any{
		&expr.Meta{Key: key, Register: 1},
		&expr.Cmp{Op: op, Register: 1, Data: padded},
	}
}

// unrelated matches packets that begin a connection.
func unrelated() []expr.Any {
	known := binaryutil.NativeEndian.PutUint32(expr.CtStateBitESTABLISHED | expr.CtStateBitRELATED)
	return []expr.Any{
		&expr.Ct{Key: expr.CtKeySTATE, Register: 1},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: known, Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: make([]byte, 4)},
	}
}

// forward lets the kernel pass packets between the bridge and the device of the
// default route. Like other container tools, it leaves that switched on.
func (b *bridge) forward() error {
	devices := []string{b.link.Name}
	routes, err := list(func() ([]netlink.Route, error) { return b.host.RouteList(nil, netlink.FAMILY_V4) })
	if err != nil {
		return fmt.Errorf("cannot list routes: %w", err)
	}
	for _, r := range routes {
		if bits := 0; r.Dst != nil {
			if bits, _ = r.Dst.Mask.Size(); bits > 0 {
				continue
			}
		}
		if link, err := b.host.LinkByIndex(r.LinkIndex); err == nil {
			devices = append(devices, link.Attrs().Name)
		}
	}
	for _, d := range devices {
		path := "/proc/sys/net/ipv4/conf/" + d + "/forwarding"
		if err := os.WriteFile(path, []byte("1"), 0); err != nil {
			return fmt.Errorf("cannot forward packets of %s: %w", d, err)
		}
	}
	return nil
}

// newTable starts the nftables table of a network, replacing one that a killed
// process left. It exists once conn is flushed.
func newTable(id string) (conn *nftables.Conn, table *nftables.Table, err error) {
	if err := removeTable(id); err != nil {
		return nil, nil, err
	}
	if conn, err = nftables.New(); err != nil {
		return nil, nil, fmt.Errorf("cannot use nftables: %w", err)
	}
	return conn, conn.AddTable(&nftables.Table{Name: tableName(id), Family: nftables.TableFamilyIPv4}), nil
}

// removeTable takes the nftables table of a network away; one that is not there is no error.
func removeTable(id string) error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("cannot use nftables: %w", err)
	}
	tables, err := conn.ListTablesOfFamily(nftables.TableFamilyIPv4)
	if err != nil {
		return fmt.Errorf("cannot list nftables tables: %w", err)
	}
	for _, t := range tables {
		if t.Name == tableName(id) {
			conn.DelTable(t)
		}
	}
	if err := conn.Flush(); err != nil {
		return fmt.Errorf("cannot remove nftables table %s: %w", tableName(id), err)
	}
	return nil
}
