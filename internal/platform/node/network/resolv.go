// SPDX-License-Identifier: Apache-2.0

package network

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// ResolvConf renders the resolv.conf of a Pod, or returns nil when the
// machine's own file, whose text host is, serves the Pod as it is. nameserver
// is Network.Nameserver. The names of the cluster are in the hosts file, so there
// is no search in its domain.
func ResolvConf(pod *corev1.Pod, nameserver netip.Addr, host []byte) []byte {
	config := pod.Spec.DNSConfig
	if config == nil && !nameserver.IsValid() {
		return nil
	}
	servers, others := splitResolv(host)
	if nameserver.IsValid() && pod.Spec.DNSPolicy != corev1.DNSNone {
		servers = []string{nameserver.String()}
	}
	if pod.Spec.DNSPolicy == corev1.DNSNone {
		servers, others = nil, nil
	}
	if config != nil {
		servers = append(slices.Clone(config.Nameservers), servers...)
		if len(config.Searches) > 0 {
			others = append(others, "search "+strings.Join(config.Searches, " "))
		}
		for _, o := range config.Options {
			option := "options " + o.Name
			if o.Value != nil {
				option += ":" + *o.Value
			}
			others = append(others, option)
		}
	}
	var b strings.Builder
	for _, s := range servers {
		fmt.Fprintf(&b, "nameserver %s\n", s)
	}
	for _, o := range others {
		b.WriteString(o + "\n")
	}
	return []byte(b.String())
}

// splitResolv takes the addresses of nameservers and all other settings out of a resolv.conf.
func splitResolv(text []byte) (servers, others []string) {
	for line := range bytes.Lines(text) {
		fields := strings.Fields(string(line))
		switch {
		case len(fields) == 0 || strings.ContainsAny(fields[0][:1], "#;"):
		case fields[0] == "nameserver" && len(fields) > 1:
			servers = append(servers, fields[1])
		default:
			others = append(others, strings.Join(fields, " "))
		}
	}
	return servers, others
}

// hostNameservers are the machine's, and whether Pods in namespaces can ask them:
// not when one is on loopback, as that of systemd-resolved.
func hostNameservers() (servers []netip.AddrPort, reachable bool) {
	text, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		return nil, false
	}
	reachable = true
	names, _ := splitResolv(text)
	for _, name := range names {
		ip, err := netip.ParseAddr(name)
		if err != nil || !ip.Is4() {
			continue
		}
		servers = append(servers, netip.AddrPortFrom(ip, 53))
		reachable = reachable && !ip.IsLoopback()
	}
	return servers, reachable
}
