// SPDX-License-Identifier: Apache-2.0

package network

import (
	"context"
	"net"
	"net/netip"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
)

func TestPodsReachServicesAtClusterIPs(t *testing.T) {
	t.Parallel()
	n := open(t, namespaced(newPlanOf(t)))
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			c.Write([]byte("the API server"))
			c.Close()
		}
	}()
	client := watched(t, func(f informers.SharedInformerFactory) func(context.Context) {
		p, err := NewProxy(f, n, l.Addr().(*net.TCPAddr).AddrPort(), logr.Discard())
		if err != nil {
			t.Fatal(err)
		}
		return p.Run
	})
	first := n.cfg.Plan.Services.Masked().Addr().Next()
	web := first.Next()
	server, caller := acquire(t, n, "server"), acquire(t, n, "caller")
	inPod(t, n, server, "greet", ":8080", "hello").line(t)
	for _, s := range []*corev1.Service{
		service("default", "kubernetes", first.String(), corev1.ServicePort{Port: 443, Protocol: corev1.ProtocolTCP}),
		service("ml", "web", web.String(), corev1.ServicePort{Port: 80, Protocol: corev1.ProtocolTCP}),
	} {
		if _, err := client.CoreV1().Services(s.Namespace).Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.DiscoveryV1().EndpointSlices("ml").Create(t.Context(), slice("ml", "web", 8080, at(server.IP.String(), "", true)), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for want, address := range map[string]netip.AddrPort{
		"the API server":                    netip.AddrPortFrom(first, 443),
		"hello from " + n.HostIP().String(): netip.AddrPortFrom(web, 80),
	} {
		eventually(t, address.String()+" answers a Pod", func() bool {
			return inPod(t, n, caller, "call", address.String()).line(t) == want
		})
	}
	// The server knows itself by its Service too.
	if got, want := inPod(t, n, server, "call", web.String()+":80").line(t), "hello from "+n.HostIP().String(); got != want {
		t.Errorf("the server heard %q of itself, want %q", got, want)
	}
}
