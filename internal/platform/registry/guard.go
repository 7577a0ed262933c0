// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// guard refuses requests that a page in a browser may have made, and those of
// senders without the access that they need.
func (r *Registry) guard(req *http.Request, need Access) error {
	if !r.knownHost(req.Host) {
		return fail(http.StatusForbidden, Denied, "this registry is not called %.80q: it answers to localhost and loopback addresses", req.Host)
	}
	// Browsers send at least one of the two with requests across sites.
	switch site := req.Header.Get("Sec-Fetch-Site"); site {
	case "", "none", "same-origin":
	default:
		return fail(http.StatusForbidden, Denied, "requests from other web sites are refused")
	}
	if origin := req.Header.Get("Origin"); origin != "" {
		if from, err := url.Parse(origin); err != nil || from.Host != req.Host {
			return fail(http.StatusForbidden, Denied, "requests from other web sites are refused")
		}
	}
	return r.authorize(req, need)
}

func (r *Registry) authorize(req *http.Request, need Access) error {
	access := None
	if r.config.Authorize != nil {
		var err error
		if access, err = r.config.Authorize(req); err != nil {
			return fail(http.StatusUnauthorized, Unauthorized, "%v", err)
		}
	}
	if access >= need {
		return nil
	}
	if _, given := credentials(req); given && access > None {
		return fail(http.StatusForbidden, Denied, "these credentials do not allow this")
	}
	return fail(http.StatusUnauthorized, Unauthorized, "authentication required")
}

// knownHost reports whether a Host header names this server. Loopback addresses
// do, since no other site can have one as its name.
func (r *Registry) knownHost(hostport string) bool {
	host := hostport
	if name, _, err := net.SplitHostPort(hostport); err == nil {
		host = name
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.Unmap().IsLoopback()
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || slices.ContainsFunc(r.config.Hosts, func(name string) bool { return strings.EqualFold(name, host) })
}
