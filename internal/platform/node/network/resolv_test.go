// SPDX-License-Identifier: Apache-2.0

package network

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestResolvConf(t *testing.T) {
	t.Parallel()
	const host = "# machine\nnameserver 127.0.0.53\nsearch lan\noptions edns0\n"
	gateway := netip.MustParseAddr("10.128.0.1")
	two := "2"
	config := &corev1.PodDNSConfig{
		Nameservers: []string{"192.0.2.53"}, Searches: []string{"acme.example"},
		Options: []corev1.PodDNSConfigOption{{Name: "ndots", Value: &two}, {Name: "rotate"}},
	}
	tests := []struct {
		reason     string
		spec       corev1.PodSpec
		nameserver netip.Addr
		want       string
	}{
		{"the machine's file serves", corev1.PodSpec{}, netip.Addr{}, ""},
		{"the relay replaces the machine's nameservers", corev1.PodSpec{}, gateway, "nameserver 10.128.0.1\nsearch lan\noptions edns0\n"},
		{"the Pod's settings are added", corev1.PodSpec{DNSConfig: config}, netip.Addr{},
			"nameserver 192.0.2.53\nnameserver 127.0.0.53\nsearch lan\noptions edns0\nsearch acme.example\noptions ndots:2\noptions rotate\n"},
		{"or are all", corev1.PodSpec{DNSConfig: config, DNSPolicy: corev1.DNSNone}, gateway,
			"nameserver 192.0.2.53\nsearch acme.example\noptions ndots:2\noptions rotate\n"},
	}
	for _, tt := range tests {
		got := ResolvConf(&corev1.Pod{Spec: tt.spec}, tt.nameserver, []byte(host))
		if diff := cmp.Diff(tt.want, string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
		}
	}
}

func TestRelay(t *testing.T) {
	t.Parallel()
	server, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		buf := make([]byte, 100)
		for n, from, err := server.ReadFromUDPAddrPort(buf); err == nil; n, from, err = server.ReadFromUDPAddrPort(buf) {
			server.WriteToUDPAddrPort(append([]byte("answer to "), buf[:n]...), from)
		}
	}()
	at := netip.AddrPortFrom(localhost, uint16(freePort(t)))
	r, err := startRelay(machine{}, at, []netip.AddrPort{server.LocalAddr().(*net.UDPAddr).AddrPort()}, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	for _, question := range []string{"one", "two"} {
		conn, err := net.Dial("udp4", at.String())
		if err != nil {
			t.Fatal(err)
		}
		conn.SetDeadline(time.Now().Add(10 * time.Second))
		conn.Write([]byte(question))
		buf := make([]byte, 100)
		n, err := conn.Read(buf)
		conn.Close()
		if err != nil || string(buf[:n]) != "answer to "+question {
			t.Errorf("got %q, %v", buf[:n], err)
		}
	}
	if second, err := startRelay(machine{}, at, []netip.AddrPort{at}, logr.Discard()); err == nil {
		second.close()
		t.Error("two relays at one address")
	}
}

func FuzzSplitResolv(f *testing.F) {
	f.Add([]byte("nameserver 10.0.0.1\n; c\n\n#\noptions a b"))
	f.Fuzz(func(t *testing.T, text []byte) {
		servers, others := splitResolv(text)
		for _, s := range append(servers, others...) {
			if s == "" {
				t.Errorf("%q: an empty setting", text)
			}
		}
	})
}
