// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestAllowed(t *testing.T) {
	t.Parallel()
	a, err := ParseAllowed([]string{"10.1.0.0/16", "192.168.7.7", "fd00:1::/32", "Registry.corp:5000", "mirror.corp", "*.lab.corp", "*.farm:5000"})
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]bool{
		"1.1.1.1": true, "8.8.8.8": true, "172.32.0.1": true, "2606:4700::1111": true, "64:ff9b::8.8.8.8": true, "::ffff:8.8.8.8": true,
		"127.0.0.1": false, "127.8.8.8": false, "::1": false, "0.0.0.0": false, "0.1.2.3": false, "::": false,
		"10.0.0.1": false, "172.16.0.1": false, "192.168.7.8": false, "fd00:2::1": false, "100.64.0.1": false,
		"169.254.169.254": false, "fe80::1": false, "fe80::1%eth0": false, "fec0::1": false, "224.0.0.1": false, "ff02::1": false,
		"255.255.255.255": false, "240.0.0.1": false, "198.18.0.1": false, "192.0.0.8": false, "203.0.113.1": false,
		"::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false, "::127.0.0.1": false, "64:ff9b::169.254.169.254": false, "64:ff9b::10.0.0.1": false,
		"2002:7f00:1::": false, "2001:0:1::": false, "2001:db8::1": false,
		"10.1.255.1": true, "::ffff:10.1.2.3": true, "10.2.0.1": false, "192.168.7.7": true, "fd00:1::5": true,
	} {
		if got := a.address(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is allowed: %v, want %v", address, got, want)
		}
	}
	for host, want := range map[string]bool{
		"registry.corp:5000": true, "REGISTRY.corp:5000": true, "registry.corp:443": false, "registry.corp": false,
		"mirror.corp:443": true, "mirror.corp:5000": true, "a.mirror.corp:443": false, "evil-mirror.corp:443": false,
		"a.lab.corp:443": true, "a.b.lab.corp:1": true, "lab.corp:443": false, "evillab.corp:443": false, "lab.corp.evil:443": false,
		"a.farm:5000": true, "a.farm:443": false,
	} {
		if got := a.host(host); got != want {
			t.Errorf("%s is allowed: %v, want %v", host, got, want)
		}
	}
	for _, wrong := range []string{"", "*", "a/b", "http://a", "10.0.0.0/40", "a b", "*.*.a", ":5000"} {
		if _, err := ParseAllowed([]string{wrong}); err == nil {
			t.Errorf("%q is read", wrong)
		}
	}
}

// TestForbiddenAddresses names, as a tenant does in a manifest, registries at
// addresses that are not public, and registries that lead on to one.
func TestForbiddenAddresses(t *testing.T) {
	t.Parallel()
	var reached atomic.Int32
	inner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reached.Add(1)
		http.Error(w, "hush", http.StatusNotFound)
	}))
	t.Cleanup(inner.Close)
	_, port, _ := strings.Cut(strings.TrimPrefix(inner.URL, "http://"), ":")
	// The registry is allowed by its name alone; what it leads to is not.
	allow := func(server *httptest.Server) (string, Allowed) {
		host := strings.TrimPrefix(server.URL, "http://")
		a, err := ParseAllowed([]string{host})
		if err != nil {
			t.Fatal(err)
		}
		return host, a
	}
	leads := func(to string) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case to == "realm":
				w.Header().Set("WWW-Authenticate", `Bearer realm="http://localhost:`+port+`/token",service="x"`)
				w.WriteHeader(http.StatusUnauthorized)
			case r.URL.Path == "/v2/":
			default:
				http.Redirect(w, r, inner.URL+r.URL.Path, http.StatusTemporaryRedirect)
			}
		}))
		t.Cleanup(s.Close)
		return s
	}
	redirecting, redirected := allow(leads("blob"))
	asking, asked := allow(leads("realm"))
	for name, c := range map[string]struct {
		image   string
		allowed Allowed
	}{
		"Address":  {"127.0.0.1:" + port + "/x", Allowed{}},
		"Name":     {"localhost:" + port + "/x", Allowed{}},
		"Six":      {"[::1]:" + port + "/x", Allowed{}},
		"Any":      {"0.0.0.0:" + port + "/x", Allowed{}},
		"Redirect": {redirecting + "/x", redirected},
		"Realm":    {asking + "/x", asked},
	} {
		_, err := New(nil, c.allowed).Entrypoint(t.Context(), &corev1.Pod{}, &corev1.Container{Image: c.image})
		if err == nil || reached.Load() > 0 {
			t.Fatalf("%s: %s is reached %d times: %v", name, c.image, reached.Load(), err)
		}
		if name != "Six" && !strings.Contains(err.Error(), "not have a public address") { // not every registry's name may be an address of IPv6
			t.Errorf("%s: the error does not say what to do: %v", name, err)
		}
		if name == "Name" && strings.Contains(err.Error(), "127.0.0.1") {
			t.Errorf("the error tells the address of a name: %v", err)
		}
	}
	all, err := ParseAllowed([]string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = New(nil, all).Entrypoint(t.Context(), &corev1.Pod{}, &corev1.Container{Image: "127.0.0.1:" + port + "/x"})
	if err == nil || reached.Load() == 0 {
		t.Errorf("an address that is allowed is not reached: %v", err)
	}
	if err != nil && strings.Contains(err.Error(), "hush") {
		t.Errorf("what the host said is quoted: %v", err)
	}
}

// TestProxy holds that a proxy may be anywhere, but does not lead to an address
// that is not allowed.
func TestProxy(t *testing.T) {
	t.Parallel()
	var hosts []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { hosts = append(hosts, r.Host) }))
	t.Cleanup(proxy.Close)
	at, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	carry := newTransport(Allowed{}, func(*http.Request) (*url.URL, error) { return at, nil })
	for target, want := range map[string]bool{"http://registry.example/": true, "http://169.254.169.254/": false} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := carry.RoundTrip(request)
		if err == nil {
			response.Body.Close()
		}
		if (err == nil) != want {
			t.Errorf("%s: %v", target, err)
		}
	}
	if fmt.Sprint(hosts) != "[registry.example]" {
		t.Errorf("the proxy was asked for %v", hosts)
	}
}

// TestLargeAnswers has a registry that never stops talking.
func TestLargeAnswers(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v2/" {
			return
		}
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		for part := make([]byte, 1<<16); r.Context().Err() == nil; {
			if _, err := w.Write(part); err != nil {
				return
			}
		}
	}))
	t.Cleanup(s.Close)
	_, err := New(nil, loopback).Entrypoint(t.Context(), &corev1.Pod{}, &corev1.Container{Image: strings.TrimPrefix(s.URL, "http://") + "/x"})
	if err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("got %v, want that the answer is too large", err)
	}
}
