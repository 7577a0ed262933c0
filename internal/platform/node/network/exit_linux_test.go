// SPDX-License-Identifier: Apache-2.0

package network

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/platform/node/rootless"
	"diwan.dev/diwan/internal/platform/node/rootless/rootlesstest"
)

func TestAsAnOrdinaryUser(t *testing.T) {
	t.Parallel()
	rootlesstest.Again(t, "Namespaces|Pod|Restore|Owner|Outside|Abandoned|Acquire")
}

// echo answers packets at an address with their own content, and a prefix.
func echo(t *testing.T, address string) int {
	t.Helper()
	l, err := net.ListenPacket("udp4", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		buf := make([]byte, udpBytes)
		for n, from, err := l.ReadFrom(buf); err == nil; n, from, err = l.ReadFrom(buf) {
			l.WriteTo(append([]byte("heard "), buf[:n]...), from)
		}
	}()
	return l.LocalAddr().(*net.UDPAddr).Port
}

// speaker listens at an address and says its name to each caller.
func speaker(t *testing.T, via sockets, address, name string) netip.AddrPort {
	t.Helper()
	l, err := via.Listen("tcp4", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			io.WriteString(c, name)
			c.Close()
		}
	}()
	return l.Addr().(*net.TCPAddr).AddrPort()
}

// TestOutside reaches from a Pod in a user namespace what this process reaches.
func TestOutside(t *testing.T) {
	t.Parallel()
	n := open(t, namespaced(newPlanOf(t)))
	if !n.bridge.beside() {
		t.Skip("root's Pods are routed by the kernel")
	}
	if n.exit == nil {
		t.Fatal("there is no way outside")
	}
	s := acquire(t, n, "a")
	loopback := speaker(t, machine{}, "127.0.0.1:0", "the machine")
	all := speaker(t, machine{}, "0.0.0.0:0", "an address of the machine")
	gateway := func(port uint16) string { return netip.AddrPortFrom(n.HostIP(), port).String() }
	refused := uint16(freePort(t))
	for _, tt := range []struct{ reason, address, want string }{
		{"the gateway stands for the machine's loopback", gateway(loopback.Port()), "the machine"},
		{"an address of the machine", netip.AddrPortFrom(primaryIP(), all.Port()).String(), "an address of the machine"},
		{"nobody listens", gateway(refused), "reset"},
		{"a cluster IP without a Service", netip.AddrPortFrom(n.cfg.Plan.Services.Addr().Next(), 80).String(), "refused"},
	} {
		if got := inPod(t, n, s, "call", tt.address).line(t); !strings.Contains(got, tt.want) {
			t.Errorf("%s: the Pod heard %q, want %q", tt.reason, got, tt.want)
		}
	}
	inside := inPod(t, n, acquire(t, n, "b"), "greet", n.HostIP().String()+":80", "never")
	if got := inside.line(t); got == "listening" {
		t.Error("a Pod listens at the gateway's address")
	}
	bridge := speaker(t, n, gateway(0), "at the bridge")
	if got := inPod(t, n, s, "call", bridge.String()).line(t); got != "at the bridge" {
		t.Errorf("the Pod heard %q of a listener at the gateway", got)
	}
}

// TestPacketsOutside has two Pods speak to two addresses by packets, more than once.
func TestPacketsOutside(t *testing.T) {
	t.Parallel()
	n := open(t, namespaced(newPlanOf(t)))
	if !n.bridge.beside() {
		t.Skip("root's Pods are routed by the kernel")
	}
	loopback, all := echo(t, "127.0.0.1:0"), echo(t, "0.0.0.0:0")
	for _, uid := range []string{"a", "b"} {
		s := acquire(t, n, uid)
		for _, at := range []string{fmt.Sprintf("%s:%d", n.HostIP(), loopback), fmt.Sprintf("%s:%d", primaryIP(), all)} {
			if got := inPod(t, n, s, "ask", at, uid+" to "+at).line(t); got != strings.Repeat("heard "+uid+" to "+at+";", 3) {
				t.Errorf("Pod %s heard %q", uid, got)
			}
		}
	}
}

// refusing is a socket to a side that refuses what comes, and says nothing.
type refusing struct {
	machine
	net.Conn
}

func (r refusing) DialContext(context.Context, string, string) (net.Conn, error) { return r, nil }
func (refusing) Write([]byte) (int, error)                                       { return 0, unix.ECONNREFUSED }

// TestRefusedFlow ends a conversation by packets when what the Pod sends is rejected:
// its next packet begins another.
func TestRefusedFlow(t *testing.T) {
	t.Parallel()
	if !rootless.Root() {
		t.Skip("only root may act for another address here")
	}
	home, err := os.Open(threadNetns)
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	silent, other := net.Pipe()
	defer other.Close()
	e := &exit{bridge: &bridge{home: home}, ctx: t.Context(), flows: map[flow]net.Conn{}}
	e.sockets, e.udpIdle = refusing{Conn: silent}, time.Hour
	pod, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer pod.Close()
	f := flow{client: unmap(pod.LocalAddr().(*net.UDPAddr).AddrPort()), server: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.9"), uint16(freePort(t)))}
	if e.flow(f) == nil {
		t.Fatal("there is no conversation")
	}
	if _, err := pod.WriteToUDPAddrPort([]byte("text"), f.server); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { e.running.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		silent.Close()
		t.Error("the conversation goes on")
	}
	<-ended
	if len(e.flows) > 0 {
		t.Errorf("%d conversations are left", len(e.flows))
	}
}

// ask sends a packet three times, each after the answer to the one before.
func ask(address, text string) string {
	c, err := net.Dial("udp4", address)
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	var all strings.Builder
	for range 3 {
		c.SetDeadline(time.Now().Add(10 * time.Second))
		io.WriteString(c, text)
		buf := make([]byte, udpBytes)
		n, err := c.Read(buf)
		if err != nil {
			return err.Error()
		}
		fmt.Fprintf(&all, "%s;", buf[:n])
	}
	return all.String()
}
