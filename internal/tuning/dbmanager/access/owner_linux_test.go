// SPDX-License-Identifier: Apache-2.0

package access

import (
	"net"
	"net/netip"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/platform/node/rootless/rootlesstest"
	"diwan.dev/diwan/internal/platform/node/thread"
)

// TestSameUser looks for both ends of real connections, of both families.
func TestSameUser(t *testing.T) {
	t.Parallel()
	for _, listen := range []string{"127.0.0.1:0", "127.5.6.7:0", "[::ffff:127.0.0.1]:0", "[::1]:0"} {
		l, err := net.Listen("tcp", listen)
		if err != nil {
			t.Logf("not checked here: %v", err)
			continue
		}
		defer l.Close()
		out, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		in, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		peer, _ := addrPort(in.RemoteAddr())
		here, _ := addrPort(in.LocalAddr())
		if !SameUser(peer, here) {
			t.Errorf("the connection from %s to %s is not known as this user's", peer, here)
		}
		if stranger := netip.AddrPortFrom(netip.MustParseAddr("10.1.2.3"), peer.Port()); SameUser(stranger, here) {
			t.Errorf("a connection from %s is taken for this user's", stranger)
		}
	}
}

// TestSameUserOfClosedConnections closes real connections in each order: what is
// left of them in the kernel's tables says root.
func TestSameUserOfClosedConnections(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason string
		close  func(in, out *net.TCPConn)
	}{
		{"who sends and closes at once", func(_, out *net.TCPConn) { out.Close() }},
		{"of a connection that both have closed, one end waits for what comes late", func(in, out *net.TCPConn) { out.Close(); in.Close() }},
	} {
		in, out := connection(t, func(address string) (net.Conn, error) { return net.Dial("tcp", address) })
		peer, _ := addrPort(in.RemoteAddr())
		here, _ := addrPort(in.LocalAddr())
		// A process that another test forks holds the connection until it executes
		// its program.
		syscall.ForkLock.RLock()
		c.close(in, out)
		same := SameUser(peer, here)
		syscall.ForkLock.RUnlock()
		if same {
			t.Errorf("%s: %s is taken for this user's", c.reason, peer)
		}
	}
}

// TestSameUserOfAStranger connects as another user.
func TestSameUserOfAStranger(t *testing.T) {
	t.Parallel()
	if unix.Getuid() != 0 {
		t.Skip("only root can become another user")
	}
	in, _ := connection(t, func(address string) (conn net.Conn, err error) {
		err = thread.Run(func() error {
			if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, rootlesstest.User, rootlesstest.User, rootlesstest.User); errno != 0 {
				return errno
			}
			conn, err = net.Dial("tcp", address)
			return err
		})
		return conn, err
	})
	peer, _ := addrPort(in.RemoteAddr())
	here, _ := addrPort(in.LocalAddr())
	if SameUser(peer, here) {
		t.Errorf("the connection of user %d is taken for root's", rootlesstest.User)
	}
}

// connection returns both ends of a connection to loopback.
func connection(t *testing.T, dial func(address string) (net.Conn, error)) (in, out *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := dial(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	in, out = accepted.(*net.TCPConn), conn.(*net.TCPConn)
	t.Cleanup(func() { in.Close(); out.Close() })
	return in, out
}
