// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package network

import (
	"net"
	"net/netip"
)

func newNamespaces(Config) (Network, error) { return nil, errUnsupported }

// hostPrefixes are the subnets of the machine's addresses.
func hostPrefixes() []netip.Prefix {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var prefixes []netip.Prefix
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok {
			if p, err := netip.ParsePrefix(n.String()); err == nil {
				prefixes = append(prefixes, p.Masked())
			}
		}
	}
	return prefixes
}
