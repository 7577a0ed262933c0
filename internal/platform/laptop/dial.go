// SPDX-License-Identifier: Apache-2.0

package laptop

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// dialService connects to an address, host:port, as a Pod would. This process is
// no Pod: what a Service's name, name.namespace, stands for is looked up. Any
// other host is the machine's own to find.
func (c *Cluster) dialService(ctx context.Context, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	at, err := c.endpoint(ctx, host, port)
	if err != nil {
		return nil, err
	}
	if at.IsValid() {
		return (*c.network.Load()).DialContext(ctx, "tcp", at.String())
	}
	var dialer net.Dialer
	return dialer.DialContext(ctx, "tcp", address)
}

// dialPod connects to the address of a Pod.
func (c *Cluster) dialPod(ctx context.Context, network, address string) (net.Conn, error) {
	return (*c.network.Load()).DialContext(ctx, network, address)
}

// endpoint is where a ready Pod of a Service answers, the zero AddrPort for a
// host that is no Service's name.
func (c *Cluster) endpoint(ctx context.Context, host, port string) (at netip.AddrPort, err error) {
	name, rest, ok := strings.Cut(host, ".")
	pods := c.network.Load()
	if _, err := netip.ParseAddr(host); err == nil || !ok || pods == nil {
		return at, nil
	}
	namespace, _, _ := strings.Cut(rest, ".")
	client, err := typedClient(c.as(operatorUser))
	if err != nil {
		return at, err
	}
	list, err := client.DiscoveryV1().EndpointSlices(namespace).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + name})
	if err != nil {
		return at, fmt.Errorf("cannot find Service %s/%s: %w", namespace, name, err)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || len(list.Items) == 0 {
		return at, err
	}
	for _, slice := range list.Items {
		for _, e := range slice.Endpoints {
			if len(e.Addresses) == 0 || e.Conditions.Ready != nil && !*e.Conditions.Ready {
				continue
			}
			ip, err := netip.ParseAddr(e.Addresses[0])
			if err != nil {
				return at, err
			}
			if len(slice.Ports) == 1 && slice.Ports[0].Port != nil {
				number = uint64(*slice.Ports[0].Port) // the Service may have another
			}
			return netip.AddrPortFrom((*pods).Dialable(ip), uint16(number)), nil
		}
	}
	return at, fmt.Errorf("no Pod of Service %s/%s is ready", namespace, name)
}
