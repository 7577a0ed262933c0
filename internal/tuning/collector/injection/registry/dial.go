// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
)

// maxBody limits the size of a registry's response in bytes: only an image's
// manifest and configuration are read.
const maxBody = 4 << 20

// Allowed are the registries that may be asked although their addresses are not
// public. The zero value allows none.
type Allowed struct {
	networks []netip.Prefix
	hosts    []string // host or host:port, in lower case; *.domain for all below
}

// ParseAllowed reads a list of networks such as 10.1.0.0/16, addresses, and hosts
// such as registry.corp:5000 or *.corp. A host without a port is allowed on all.
func ParseAllowed(list []string) (Allowed, error) {
	var a Allowed
	for _, entry := range list {
		if network, err := netip.ParsePrefix(entry); err == nil {
			a.networks = append(a.networks, network.Masked())
			continue
		}
		if address, err := netip.ParseAddr(entry); err == nil {
			a.networks = append(a.networks, netip.PrefixFrom(address, address.BitLen()))
			continue
		}
		host := entry
		if h, _, err := net.SplitHostPort(entry); err == nil {
			host = h
		}
		if host == "" || host == "*" || strings.ContainsAny(entry, "/@ ") || strings.Contains(host, ":") || strings.Contains(strings.TrimPrefix(host, "*."), "*") {
			return Allowed{}, fmt.Errorf("cannot parse %q: want a network such as 10.1.0.0/16, an address, or a host such as registry.corp:5000 or *.corp", entry)
		}
		a.hosts = append(a.hosts, strings.ToLower(entry))
	}
	return a, nil
}

// host reports whether a host is allowed by its name, whatever its address.
func (a Allowed) host(hostport string) bool {
	hostport = strings.ToLower(hostport)
	name, _, err := net.SplitHostPort(hostport)
	if err != nil {
		name = hostport
	}
	for _, allowed := range a.hosts {
		domain, wild := strings.CutPrefix(allowed, "*")
		switch {
		case wild && (strings.HasSuffix(name, domain) || strings.HasSuffix(hostport, domain)), allowed == name, allowed == hostport:
			return true
		}
	}
	return false
}

// address reports whether an address may be connected to.
func (a Allowed) address(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	for _, network := range a.networks {
		if network.Contains(ip) {
			return true
		}
	}
	return public(ip)
}

// special are the networks that IANA does not count as globally reachable, beyond
// those that package netip knows; what embeds an address of another network is not
// reachable by itself either.
var special = func() (networks []netip.Prefix) {
	for _, text := range []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
		"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
	} {
		networks = append(networks, netip.MustParsePrefix(text))
	}
	return networks
}()

var (
	global = netip.MustParsePrefix("2000::/3")
	nat64  = netip.MustParsePrefix("64:ff9b::/96")
)

// public reports whether an address belongs to the public internet.
func public(ip netip.Addr) bool {
	if nat64.Contains(ip) { // how a network without IPv4 reaches an address of it
		last := ip.As16()
		ip = netip.AddrFrom4([4]byte(last[12:]))
	}
	if !ip.IsGlobalUnicast() || ip.IsPrivate() || ip.Is6() && !global.Contains(ip) {
		return false
	}
	for _, network := range special {
		if network.Contains(ip) {
			return false
		}
	}
	return true
}

// notAllowed says that a host has an address that is neither public nor allowed.
// It does not say which: who named the host may not be able to resolve it.
type notAllowed struct{ host string }

// Error implements error.
func (n notAllowed) Error() string {
	return fmt.Sprintf("%s does not have a public address: the cluster's administrator can add it to collector.registries in the chart's values", n.host)
}

// newTransport connects to registries, and to their redirects, at allowed addresses
// only. The address is checked at connection time, so it is the one that the name
// resolves to at that moment. proxy is the administrator's and may be anywhere; the
// proxy decides what is reachable through it.
func newTransport(allowed Allowed, proxy func(*http.Request) (*url.URL, error)) http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.Proxy = nil
	direct, proxied := t, t.Clone()
	direct.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		dialer := net.Dialer{Timeout: timeout}
		if !allowed.host(address) {
			dialer.Control = func(_, resolved string, _ syscall.RawConn) error {
				at, err := netip.ParseAddrPort(resolved)
				if err != nil || !allowed.address(at.Addr()) {
					return notAllowed{address}
				}
				return nil
			}
		}
		return dialer.DialContext(ctx, network, address)
	}
	proxied.Proxy = proxy
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		through := direct
		if by, err := proxy(request); err != nil {
			return nil, err
		} else if by != nil {
			if ip, err := netip.ParseAddr(request.URL.Hostname()); err == nil && !allowed.host(request.URL.Host) && !allowed.address(ip) {
				return nil, notAllowed{request.URL.Host}
			}
			through = proxied
		}
		response, err := through.RoundTrip(request)
		if err != nil {
			return nil, err
		}
		response.Body = &bounded{response.Body, maxBody}
		return response, nil
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// bounded is a body that is an error beyond its bound.
type bounded struct {
	io.ReadCloser
	left int64
}

var errTooLarge = errors.New("the registry's response is too large")

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
