// SPDX-License-Identifier: Apache-2.0

package access

import (
	"net"
	"net/netip"
	"testing"
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
