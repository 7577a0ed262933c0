// SPDX-License-Identifier: Apache-2.0

package network

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// domain is the cluster's DNS domain.
const domain = "cluster.local"

// Directory is a snapshot of what the names of a cluster resolve to.
type Directory struct {
	// Services and Slices are from all namespaces.
	Services []*corev1.Service
	Slices   []*discoveryv1.EndpointSlice
	// ClusterIPs says that cluster IPs can be reached (Network.ClusterIPs). If
	// not, a Service's name stands for its Pods, provided that they listen on
	// the ports that the Service shows; else the Service has no name.
	ClusterIPs bool
	// Dialable turns a Pod's IP into the address that answers (Network.Dialable).
	Dialable func(netip.Addr) netip.Addr
}

// managedHosts is a kubelet's first line, by which one knows that a hosts file is not the
// image's.
const managedHosts = "# Kubernetes-managed hosts file.\n"

// Hosts renders the hosts file of a Pod that programs reach at bind:
//
//	localhost; the Pod's own hostname and, with a subdomain, its names there;
//	its hostAliases; Services as name (in the Pod's own namespace), name.namespace,
//	name.namespace.svc and name.namespace.svc.cluster.local; for headless Services
//	their ready Pods under these names and, for Pods with a hostname (those of
//	StatefulSets and indexed Jobs), hostname before each; what of these names comes
//	before a domain of the Pod's dnsConfig.searches; then host, the machine's own
//	lines.
//
// The first line of a name counts, so Kubernetes' names win over the machine's.
func Hosts(pod *corev1.Pod, bind netip.Addr, d Directory, host []byte) []byte {
	return renderHosts(pod, bind, d.render(pod.Namespace), host)
}

// renderHosts is Hosts with the part that the Pods of a namespace share.
func renderHosts(pod *corev1.Pod, bind netip.Addr, shared, host []byte) []byte {
	var b bytes.Buffer
	b.WriteString(managedHosts + "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n")
	fmt.Fprintf(&b, "%s %s\n", bind, strings.Join(ownNames(pod), " "))
	for _, alias := range pod.Spec.HostAliases { // with tabs, as kubelets do
		fmt.Fprintf(&b, "%s\t%s\n", alias.IP, strings.Join(alias.Hostnames, "\t"))
	}
	b.Write(shared)
	if pod.Spec.DNSConfig != nil {
		b.Write(bare(shared, pod.Spec.DNSConfig.Searches))
	}
	b.Write(host)
	return b.Bytes()
}

// bare are lines for the names in others that end in one of the domains in which
// a Pod searches, by what comes before the domain.
func bare(lines []byte, searches []string) []byte {
	var b bytes.Buffer
	for each := range bytes.Lines(lines) {
		words := strings.Fields(string(each))
		if len(words) < 2 {
			continue
		}
		for _, search := range searches { // a line begins with the whole name
			if name, found := strings.CutSuffix(words[1], "."+search); found && !slices.Contains(words[1:], name) {
				fmt.Fprintf(&b, "%s %s\n", words[0], name)
			}
		}
	}
	return b.Bytes()
}

// ownNames returns the Pod's own names, the longest first: those that kubelets
// write, and those of its subdomain's Service, so that a program that looks
// itself up at once does not resolve to another Pod.
func ownNames(pod *corev1.Pod) []string {
	hostname := pod.Spec.Hostname
	if hostname == "" {
		hostname = strings.TrimRight(pod.Name[:min(len(pod.Name), 63)], "-.")
	}
	if pod.Spec.Subdomain == "" {
		return []string{hostname}
	}
	return append(prefixed(hostname, serviceNames(serviceKey{pod.Namespace, pod.Spec.Subdomain}, pod.Namespace)), hostname)
}

// serviceKey names a Service.
type serviceKey struct{ namespace, name string }

// endpoint is a ready Pod of a Service.
type endpoint struct {
	ip       netip.Addr
	hostname string
}

// render writes the lines that all Pods of a namespace share.
func (d *Directory) render(namespace string) []byte {
	endpoints, direct := d.endpoints()
	var b bytes.Buffer
	for _, s := range d.sorted() {
		key := serviceKey{s.Namespace, s.Name}
		names := serviceNames(key, namespace)
		switch {
		case s.Spec.Type == corev1.ServiceTypeExternalName:
			// A hosts file has no aliases of names.
		case s.Spec.ClusterIP == corev1.ClusterIPNone:
			for _, e := range endpoints[key] {
				line(&b, e.ip, names)
				if e.hostname != "" {
					line(&b, e.ip, prefixed(e.hostname, names))
				}
			}
		case d.ClusterIPs:
			if ip, err := netip.ParseAddr(s.Spec.ClusterIP); err == nil {
				line(&b, ip, names)
			}
		case direct[key]:
			for _, e := range endpoints[key] {
				line(&b, e.ip, names)
			}
		}
	}
	return b.Bytes()
}

func line(b *bytes.Buffer, ip netip.Addr, names []string) {
	fmt.Fprintf(b, "%s %s\n", ip, strings.Join(names, " "))
}

// serviceNames are the names of a Service for Pods of a namespace.
func serviceNames(s serviceKey, namespace string) []string {
	full := s.name + "." + s.namespace
	names := []string{full + ".svc." + domain, full + ".svc", full}
	if s.namespace == namespace {
		names = append(names, s.name)
	}
	return names
}

func prefixed(hostname string, names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = hostname + "." + n
	}
	return out
}

func (d *Directory) sorted() []*corev1.Service {
	all := slices.Clone(d.Services)
	slices.SortFunc(all, func(a, b *corev1.Service) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return all
}

// endpoints are the ready Pods of each Service in the order of their addresses,
// and whether they listen on the Service's own ports.
func (d *Directory) endpoints() (map[serviceKey][]endpoint, map[serviceKey]bool) {
	ports := map[serviceKey]map[string]int32{}
	for _, s := range d.Services {
		of := map[string]int32{}
		for _, p := range s.Spec.Ports {
			of[p.Name] = p.Port
		}
		ports[serviceKey{s.Namespace, s.Name}] = of
	}
	endpoints, direct := map[serviceKey][]endpoint{}, map[serviceKey]bool{}
	for _, slice := range d.Slices {
		key := serviceOf(slice)
		if slice.AddressType != discoveryv1.AddressTypeIPv4 {
			continue
		}
		same, seen := direct[key]
		direct[key] = (same || !seen) && samePorts(slice, ports[key])
		for _, e := range slice.Endpoints {
			if !ready(e) || len(e.Addresses) == 0 {
				continue
			}
			ip, err := netip.ParseAddr(e.Addresses[0])
			if err != nil {
				continue
			}
			found := endpoint{ip: d.Dialable(ip)}
			if e.Hostname != nil {
				found.hostname = *e.Hostname
			}
			endpoints[key] = append(endpoints[key], found)
		}
	}
	for key, all := range endpoints {
		slices.SortFunc(all, func(a, b endpoint) int {
			if c := a.ip.Compare(b.ip); c != 0 {
				return c
			}
			return strings.Compare(a.hostname, b.hostname)
		})
		endpoints[key] = slices.Compact(all) // a Pod may be in two slices while it moves
	}
	return endpoints, direct
}

func serviceOf(slice *discoveryv1.EndpointSlice) serviceKey {
	return serviceKey{slice.Namespace, slice.Labels[discoveryv1.LabelServiceName]}
}

// ready reads an endpoint's condition, of which nil means unknown and counts as ready.
func ready(e discoveryv1.Endpoint) bool { return e.Conditions.Ready == nil || *e.Conditions.Ready }

// samePorts reports whether the slice's Pods listen on the ports of the Service.
func samePorts(slice *discoveryv1.EndpointSlice, ports map[string]int32) bool {
	for _, p := range slice.Ports {
		name := ""
		if p.Name != nil {
			name = *p.Name
		}
		if p.Port == nil || ports[name] != *p.Port {
			return false
		}
	}
	return true
}
