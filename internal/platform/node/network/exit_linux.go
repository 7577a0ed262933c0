// SPDX-License-Identifier: Apache-2.0

package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// exitTimeout is how long an outside address may take to accept.
const exitTimeout = 30 * time.Second

// exit carries what Pods send beyond the bridge, where the bridge lies in a
// network namespace that no device connects with the machine's network. The
// kernel takes every foreign address for one of the namespace's own and hands
// the Pods' connections and packets to two sockets of this process, which
// learns from them where they were meant to go, and connects to there from the machine's
// network. So no packet is handled in user space, and no right over the
// machine's network is needed.
//
// The gateway stands for the machine: what nobody at the bridge answers goes to
// its loopback address.
type exit struct {
	forwarder
	bridge *bridge
	tcp    net.Listener
	udp    *net.UDPConn
	ctx    context.Context // until close
	cancel context.CancelFunc

	mu    sync.Mutex
	flows map[flow]net.Conn
}

// flow is one conversation by packets.
type flow struct{ client, server netip.AddrPort }

// openExit starts to carry.
func (b *bridge) openExit() (_ *exit, err error) {
	e := &exit{bridge: b, flows: map[flow]net.Conn{}}
	e.sockets, e.udpIdle, e.log = machine{}, udpIdle, b.log
	e.ctx, e.cancel = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			e.close()
		}
	}()
	if err := b.inHub(e.listen); err != nil {
		return nil, fmt.Errorf("cannot accept the Pods' connections: %w", err)
	}
	if err := b.inHub(e.direct); err != nil {
		return nil, err
	}
	e.accept(e.ctx, e.tcp, e.carry)
	e.running.Go(e.receive)
	return e, nil
}

// listen opens the two sockets. They may act for addresses that are not this machine's.
func (e *exit) listen() (err error) {
	at := netip.AddrPortFrom(netip.IPv4Unspecified(), 0).String()
	if e.tcp, err = foreign.Listen(e.ctx, "tcp4", at); err != nil {
		return err
	}
	packets, err := foreign.ListenPacket(e.ctx, "udp4", at)
	if err != nil {
		return err
	}
	e.udp = packets.(*net.UDPConn)
	return nil
}

// foreign opens sockets for addresses that are not this machine's. Packet
// sockets receive the original destination of each packet.
var foreign = net.ListenConfig{Control: func(network, _ string, c syscall.RawConn) (err error) {
	controlErr := c.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_TRANSPARENT, 1)
		if err == nil && network == "udp4" {
			err = errors.Join(
				unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_RECVORIGDSTADDR, 1),
				unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1))
		}
	})
	return errors.Join(controlErr, err)
}}

// direct leads what leaves the bridge to the two sockets, by a route that makes
// every address one of this namespace and one nftables table:
//
//	table ip diwan-ID {
//		chain prerouting {
//			type filter hook prerouting priority mangle;
//			iifname != "diwan-ID" accept
//			ip daddr SERVICES accept
//			ip daddr PODS ip daddr != GATEWAY accept
//			ip daddr GATEWAY socket wildcard 0 accept
//			meta l4proto tcp tproxy to :TCP
//			meta l4proto udp tproxy to :UDP
//		}
//	}
func (e *exit) direct() error {
	b := e.bridge
	// Else the rules apply when a packet enters the bridge, and what they chose is forgotten.
	_ = os.WriteFile("/proc/sys/net/bridge/bridge-nf-call-iptables", []byte("0"), 0)
	lo, err := b.host.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("cannot find loopback: %w", err)
	}
	everywhere := &netlink.Route{
		LinkIndex: lo.Attrs().Index, Dst: &net.IPNet{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)},
		Type: unix.RTN_LOCAL, Table: unix.RT_TABLE_MAIN, Scope: netlink.SCOPE_HOST, Protocol: unix.RTPROT_STATIC,
	}
	if err := b.host.RouteReplace(everywhere); err != nil {
		return fmt.Errorf("cannot route to the outside: %w", err)
	}
	conn, table, err := newTable(b.plan.ID)
	if err != nil {
		return err
	}
	chain := conn.AddChain(&nftables.Chain{
		Name: "prerouting", Table: table, Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookPrerouting, Priority: nftables.ChainPriorityMangle,
	})
	gateway := netip.PrefixFrom(b.plan.Gateway(), 32)
	accept := &expr.Verdict{Kind: expr.VerdictAccept}
	rules := [][]expr.Any{
		append(b.device(expr.MetaKeyIIFNAME, expr.CmpOpNeq), accept),
		append(to(b.plan.Services, expr.CmpOpEq), accept),
		append(append(to(b.plan.Pods, expr.CmpOpEq), to(gateway, expr.CmpOpNeq)...), accept),
		append(append(to(gateway, expr.CmpOpEq), bound()...), accept),
		hand(unix.IPPROTO_TCP, e.tcp.Addr().(*net.TCPAddr).Port),
		hand(unix.IPPROTO_UDP, e.udp.LocalAddr().(*net.UDPAddr).Port),
	}
	for _, exprs := range rules {
		conn.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: exprs})
	}
	if err := conn.Flush(); err != nil {
		return fmt.Errorf("cannot add nftables rules: %w", err)
	}
	return nil
}

// to matches packets by their destination.
func to(p netip.Prefix, op expr.CmpOp) []expr.Any {
	return address(16, p, op)
}

// bound matches packets to an address and port at which a socket is bound.
func bound() []expr.Any {
	return []expr.Any{
		&expr.Socket{Key: expr.SocketKeyWildcard, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{0}},
	}
}

// hand gives the packets of a protocol to the socket at a port.
func hand(protocol byte, port int) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{protocol}},
		&expr.Immediate{Register: 1, Data: binaryutil.BigEndian.PutUint16(uint16(port))},
		&expr.TProxy{Family: unix.NFPROTO_IPV4, TableFamily: unix.NFPROTO_IPV4, RegPort: 1},
	}
}

// target translates a Pod's address to the machine's.
func (e *exit) target(address netip.AddrPort) netip.AddrPort {
	if address.Addr() == e.bridge.plan.Gateway() {
		return netip.AddrPortFrom(localhost, address.Port())
	}
	return address
}

// carry connects a Pod's connection with its destination.
func (e *exit) carry(client *net.TCPConn) {
	at := e.target(unmap(client.LocalAddr().(*net.TCPAddr).AddrPort()))
	within, cancel := context.WithTimeout(e.ctx, exitTimeout)
	server, err := e.sockets.DialContext(within, "tcp4", at.String())
	cancel()
	if err != nil {
		client.SetLinger(0) // the Pod sees a reset, as if nobody listened
		return
	}
	join(e.ctx, client, server.(*net.TCPConn))
}

// receive carries packets until close.
func (e *exit) receive() {
	buf, oob := make([]byte, udpBytes), make([]byte, 128)
	for {
		n, attached, _, client, err := e.udp.ReadMsgUDPAddrPort(buf, oob)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		server, ok := destination(oob[:attached])
		if err != nil || !ok {
			continue
		}
		if out := e.flow(flow{unmap(client), server}); out != nil {
			out.SetReadDeadline(time.Now().Add(e.udpIdle))
			out.Write(buf[:n])
		}
	}
}

// destination returns a packet's original destination, from its control
// message.
func destination(attached []byte) (netip.AddrPort, bool) {
	messages, err := unix.ParseSocketControlMessage(attached)
	if err != nil {
		return netip.AddrPort{}, false
	}
	for i := range messages {
		if at, err := unix.ParseOrigDstAddr(&messages[i]); err == nil {
			if v4, ok := at.(*unix.SockaddrInet4); ok {
				return netip.AddrPortFrom(netip.AddrFrom4(v4.Addr), uint16(v4.Port)), true
			}
		}
	}
	return netip.AddrPort{}, false
}

// flow finds the socket of a conversation, or opens one.
func (e *exit) flow(f flow) net.Conn {
	e.mu.Lock()
	defer e.mu.Unlock()
	if out, ok := e.flows[f]; ok || len(e.flows) >= udpFlows {
		return out
	}
	out, err := e.sockets.DialContext(e.ctx, "udp4", e.target(f.server).String())
	if err != nil {
		return nil
	}
	var back net.Conn // with the address that the Pod asked
	err = e.bridge.inHub(func() error {
		dialer := net.Dialer{LocalAddr: net.UDPAddrFromAddrPort(f.server), Control: foreign.Control}
		back, err = dialer.DialContext(e.ctx, "udp4", f.client.String())
		return err
	})
	if err != nil {
		out.Close()
		return nil
	}
	e.flows[f] = out
	e.running.Go(func() {
		defer e.forget(f)
		defer back.Close()
		e.pass(back, out, out)
	})
	// What follows the Pod's first packet comes here.
	e.running.Go(func() {
		defer out.Close() // else the Pod's packets would come here until out is idle
		e.pass(out, back, out)
	})
	return out
}

// pass passes packets on until the conversation is idle or refused; in is the
// end of it whose silence counts.
func (e *exit) pass(to, from, in net.Conn) {
	buf := make([]byte, udpBytes)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		in.SetReadDeadline(time.Now().Add(e.udpIdle))
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// forget ends a conversation.
func (e *exit) forget(f flow) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.flows[f].Close()
	delete(e.flows, f)
}

// close stops accepting, closes open connections and waits.
func (e *exit) close() {
	e.cancel()
	if e.tcp != nil {
		e.tcp.Close()
	}
	if e.udp != nil {
		e.udp.Close()
	}
	e.mu.Lock()
	for _, out := range e.flows {
		out.Close()
	}
	e.mu.Unlock()
	e.running.Wait()
}

// unmap is an address in its shorter form.
func unmap(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }
