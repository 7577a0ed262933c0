// SPDX-License-Identifier: Apache-2.0

package network

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

func service(namespace, name, clusterIP string, ports ...corev1.ServicePort) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.ServiceSpec{ClusterIP: clusterIP, Ports: ports},
	}
}

func slice(namespace, service string, port int32, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: namespace, Name: service + "-1", Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   endpoints,
		Ports:       []discoveryv1.EndpointPort{{Port: &port}},
	}
}

func at(ip, hostname string, ready bool) discoveryv1.Endpoint {
	e := discoveryv1.Endpoint{Addresses: []string{ip}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}
	if hostname != "" {
		e.Hostname = &hostname
	}
	return e
}

func podNamed(namespace, name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func TestHosts(t *testing.T) {
	t.Parallel()
	kubernetes := service("default", "kubernetes", "10.200.0.1", corev1.ServicePort{Port: 443})
	web := service("ml", "web", "10.200.0.7", corev1.ServicePort{Port: 80})
	workers := service("ml", "workers", "None", corev1.ServicePort{Port: 29500})
	workersSlice := slice("ml", "workers", 29500, at("10.128.0.3", "w-1", true), at("10.128.0.2", "w-0", true), at("10.128.0.9", "w-2", false))
	ranked := podNamed("ml", "w-0")
	ranked.Spec.Hostname, ranked.Spec.Subdomain = "w-0", "workers"
	aliased := podNamed("ml", "p")
	aliased.Spec.HostAliases = []corev1.HostAlias{{IP: "192.0.2.9", Hostnames: []string{"db", "db.lan"}}}
	searching := podNamed("ml", "p")
	searching.Spec.DNSConfig = &corev1.PodDNSConfig{Searches: []string{"lan", "workers.ml.svc.cluster.local"}}
	same := func(ip netip.Addr) netip.Addr { return ip }
	tests := []struct {
		reason    string
		pod       *corev1.Pod
		directory Directory
		host      string
		want      string
	}{
		{"a Pod alone", podNamed("ml", "p"), Directory{ClusterIPs: true, Dialable: same}, "", "10.128.0.5 p\n"},
		{"aliases come before Services, the machine's lines last", aliased,
			Directory{Services: []*corev1.Service{kubernetes}, ClusterIPs: true, Dialable: same}, "192.0.2.1 printer\n",
			"10.128.0.5 p\n192.0.2.9\tdb\tdb.lan\n10.200.0.1 kubernetes.default.svc.cluster.local kubernetes.default.svc kubernetes.default\n192.0.2.1 printer\n"},
		{"the short name is for Pods of the namespace", podNamed("ml", "p"),
			Directory{Services: []*corev1.Service{web}, ClusterIPs: true, Dialable: same}, "",
			"10.128.0.5 p\n10.200.0.7 web.ml.svc.cluster.local web.ml.svc web.ml web\n"},
		{"a headless Service names its ready Pods, also by their hostnames", ranked,
			Directory{Services: []*corev1.Service{workers}, Slices: []*discoveryv1.EndpointSlice{workersSlice}, ClusterIPs: true, Dialable: same}, "",
			"10.128.0.5 w-0.workers.ml.svc.cluster.local w-0.workers.ml.svc w-0.workers.ml w-0.workers w-0\n" +
				"10.128.0.2 workers.ml.svc.cluster.local workers.ml.svc workers.ml workers\n" +
				"10.128.0.2 w-0.workers.ml.svc.cluster.local w-0.workers.ml.svc w-0.workers.ml w-0.workers\n" +
				"10.128.0.3 workers.ml.svc.cluster.local workers.ml.svc workers.ml workers\n" +
				"10.128.0.3 w-1.workers.ml.svc.cluster.local w-1.workers.ml.svc w-1.workers.ml w-1.workers\n"},
		{"which are found by these alone in a domain that the Pod searches", searching,
			Directory{Services: []*corev1.Service{workers}, Slices: []*discoveryv1.EndpointSlice{slice("ml", "workers", 29500, at("10.128.0.2", "w-0", true))}, ClusterIPs: true, Dialable: same}, "",
			"10.128.0.5 p\n" +
				"10.128.0.2 workers.ml.svc.cluster.local workers.ml.svc workers.ml workers\n" +
				"10.128.0.2 w-0.workers.ml.svc.cluster.local w-0.workers.ml.svc w-0.workers.ml w-0.workers\n" +
				"10.128.0.2 w-0\n"},
		{"without cluster IPs a name leads to the Pods that listen on the Service's port", podNamed("ml", "p"),
			Directory{Services: []*corev1.Service{web}, Slices: []*discoveryv1.EndpointSlice{slice("ml", "web", 80, at("10.128.0.8", "", true))}, Dialable: twin}, "",
			"10.128.0.5 p\n127.128.0.8 web.ml.svc.cluster.local web.ml.svc web.ml web\n"},
		{"and to nothing when they listen on another", podNamed("ml", "p"),
			Directory{Services: []*corev1.Service{web}, Slices: []*discoveryv1.EndpointSlice{slice("ml", "web", 8080, at("10.128.0.8", "", true))}, Dialable: twin}, "",
			"10.128.0.5 p\n"},
	}
	for _, tt := range tests {
		got := string(Hosts(tt.pod, netip.MustParseAddr("10.128.0.5"), tt.directory, []byte(tt.host)))
		_, got, ok := strings.Cut(got, "::1 localhost ip6-localhost ip6-loopback\n")
		if diff := cmp.Diff(tt.want, got); !ok || diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
		}
	}
}

func TestHostsDoNotDependOnOrder(t *testing.T) {
	t.Parallel()
	services := []*corev1.Service{
		service("a", "x", "10.200.0.1"), service("b", "x", "None"), service("a", "y", "None"), service("b", "z", "10.200.0.4"),
	}
	slicesOf := []*discoveryv1.EndpointSlice{
		slice("b", "x", 1, at("10.128.0.2", "h", true), at("10.128.0.3", "", true)), slice("b", "x", 1, at("10.128.0.3", "", true)),
		slice("a", "y", 2, at("10.128.0.4", "g", true)),
	}
	render := func(s []*corev1.Service, e []*discoveryv1.EndpointSlice) string {
		d := Directory{Services: s, Slices: e, ClusterIPs: true, Dialable: func(ip netip.Addr) netip.Addr { return ip }}
		return string(Hosts(podNamed("a", "p"), localhost, d, nil))
	}
	want := render(services, slicesOf)
	rapid.Check(t, func(t *rapid.T) {
		got := render(rapid.Permutation(services).Draw(t, "services"), rapid.Permutation(slicesOf).Draw(t, "slices"))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestBalancer(t *testing.T) {
	t.Parallel()
	ends := []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:1"), netip.MustParseAddrPort("10.0.0.2:1"), netip.MustParseAddrPort("10.0.0.3:1")}
	client, other := netip.MustParseAddr("10.1.0.1"), netip.MustParseAddr("10.1.0.2")
	now := epoch
	plain := newBalancer(backends{endpoints: ends})
	counts := map[netip.AddrPort]int{}
	for range 30 {
		order := plain.candidates(client, now)
		if len(order) != len(ends) {
			t.Fatalf("%d of %d endpoints are tried", len(order), len(ends))
		}
		counts[order[0]]++
	}
	for _, e := range ends {
		if counts[e] != 10 {
			t.Errorf("endpoint %s got %d of 30 connections, want 10", e, counts[e])
		}
	}
	sticky := newBalancer(backends{endpoints: ends, affinity: 10})
	first := sticky.candidates(client, now)[0]
	sticky.chose(client, first, now)
	for range 5 {
		if got := sticky.candidates(client, now.Add(9))[0]; got != first {
			t.Errorf("the client moved from %s to %s", first, got)
		}
	}
	sticky.candidates(other, now)
	seen := map[netip.AddrPort]bool{}
	for range 3 {
		seen[sticky.candidates(client, now.Add(10))[0]] = true
	}
	if len(seen) != len(ends) {
		t.Error("affinity outlives its time")
	}
	sticky.set(backends{endpoints: ends[1:], affinity: 10})
	sticky.chose(client, ends[0], now)
	if got := sticky.candidates(client, now)[0]; got == ends[0] {
		t.Error("a client goes to an endpoint that is gone")
	}
}
