// SPDX-License-Identifier: Apache-2.0

package network

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
)

// Proxy makes Services work: it listens where a Service can be reached and
// passes connections on to its ready Pods, one after the other or, with session
// affinity, by client. It listens only while a Service has ready Pods, so that
// a client without one is rejected at once, as in any cluster. Pods see the
// node's address as the client's.
//
// Where cluster IPs are addresses of this machine, a Service is reached at its
// cluster IP and its node port at the node's address; node ports also answer on 127.0.0.1.
type Proxy struct {
	network   Network
	apiServer netip.AddrPort
	services  corelisters.ServiceLister
	slices    discoverylisters.EndpointSliceLister
	changed   chan struct{}

	forwarder

	fronts map[front]*listening // for Run alone
	failed map[front]string     // what was logged of those that cannot be opened
}

// front is an address at which a Service is reached.
type front struct {
	protocol corev1.Protocol
	address  netip.AddrPort
}

// listening is an open front.
type listening struct {
	balance *balancer
	stop    func()
}

// NewProxy watches through the factory, which the caller starts afterwards.
// The Service default/kubernetes leads to apiServer.
func NewProxy(factory informers.SharedInformerFactory, n Network, apiServer netip.AddrPort, log logr.Logger) (*Proxy, error) {
	changed, err := changes(factory)
	if err != nil {
		return nil, err
	}
	return &Proxy{
		network:   n,
		apiServer: apiServer,
		services:  factory.Core().V1().Services().Lister(),
		slices:    factory.Discovery().V1().EndpointSlices().Lister(),
		changed:   changed,
		forwarder: forwarder{sockets: n, udpIdle: udpIdle, log: log},
		fronts:    map[front]*listening{},
		failed:    map[front]string{},
	}, nil
}

// Run serves until ctx is done and all connections are closed.
func (p *Proxy) Run(ctx context.Context) {
	onChange(ctx, p.changed, func() { p.sync(ctx) })
	for f, l := range p.fronts {
		l.stop()
		delete(p.fronts, f)
	}
	p.running.Wait()
}

// sync opens and closes fronts as the Services say.
func (p *Proxy) sync(ctx context.Context) {
	want, err := p.want()
	if err != nil {
		p.log.Error(err, "Services are stale")
		return
	}
	for f, l := range p.fronts {
		if _, ok := want[f]; !ok {
			l.stop()
			delete(p.fronts, f)
		}
	}
	for f, to := range want {
		if l, ok := p.fronts[f]; ok {
			l.balance.set(to)
			continue
		}
		l, err := p.open(ctx, f, to)
		if err != nil {
			if p.failed[f] != err.Error() {
				p.failed[f] = err.Error()
				p.log.Info("A Service cannot be reached at one of its addresses", "address", f.address, "reason", err.Error())
			}
			continue
		}
		delete(p.failed, f)
		p.fronts[f] = l
	}
}

// open listens at a front.
func (p *Proxy) open(ctx context.Context, f front, to backends) (*listening, error) {
	b := newBalancer(to)
	switch f.protocol {
	case corev1.ProtocolTCP:
		return p.openTCP(ctx, f.address, b)
	case corev1.ProtocolUDP:
		return p.openUDP(ctx, f.address, b)
	default:
		return nil, fmt.Errorf("protocol %s is not supported", f.protocol)
	}
}

// backends are where the connections of a front go.
type backends struct {
	endpoints []netip.AddrPort
	// affinity keeps a client at its endpoint for so long after its last
	// connection; 0 is none.
	affinity time.Duration
}

// want reads from the Services where to listen.
func (p *Proxy) want() (map[front]backends, error) {
	services, err := p.services.List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("cannot list Services: %w", err)
	}
	all, err := p.slices.List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("cannot list EndpointSlices: %w", err)
	}
	endpoints := endpointsByPort(all, p.network.Dialable)
	want := map[front]backends{}
	for _, s := range services {
		if s.Spec.Type == corev1.ServiceTypeExternalName {
			continue
		}
		affinity := affinityOf(s)
		for _, port := range s.Spec.Ports {
			to := endpoints[portKey{serviceKey{s.Namespace, s.Name}, port.Name}]
			if s.Namespace == "default" && s.Name == "kubernetes" && p.apiServer.IsValid() {
				to = []netip.AddrPort{p.apiServer}
			}
			if len(to) == 0 {
				continue
			}
			for _, at := range p.addresses(s, port) {
				want[front{port.Protocol, at}] = backends{to, affinity}
			}
		}
	}
	return want, nil
}

// addresses are where a port of a Service is reached.
func (p *Proxy) addresses(s *corev1.Service, port corev1.ServicePort) []netip.AddrPort {
	var at []netip.AddrPort
	if ip, err := netip.ParseAddr(s.Spec.ClusterIP); err == nil && p.network.ClusterIPs() {
		at = append(at, netip.AddrPortFrom(ip, uint16(port.Port)))
	}
	if port.NodePort > 0 {
		at = append(at, netip.AddrPortFrom(localhost, uint16(port.NodePort)))
		if p.network.ClusterIPs() {
			at = append(at, netip.AddrPortFrom(p.network.HostIP(), uint16(port.NodePort)))
		}
	}
	return at
}

func affinityOf(s *corev1.Service) time.Duration {
	if s.Spec.SessionAffinity != corev1.ServiceAffinityClientIP {
		return 0
	}
	seconds := corev1.DefaultClientIPServiceAffinitySeconds
	if c := s.Spec.SessionAffinityConfig; c != nil && c.ClientIP != nil && c.ClientIP.TimeoutSeconds != nil {
		seconds = *c.ClientIP.TimeoutSeconds
	}
	return time.Duration(seconds) * time.Second
}

// portKey names a port of a Service.
type portKey struct {
	service serviceKey
	port    string
}

// endpointsByPort are the ready endpoints of each port of each Service, in
// order. As long as none is ready, those that are ending and still serve count.
func endpointsByPort(all []*discoveryv1.EndpointSlice, dialable func(netip.Addr) netip.Addr) map[portKey][]netip.AddrPort {
	serving, ending := map[portKey][]netip.AddrPort{}, map[portKey][]netip.AddrPort{}
	for _, slice := range all {
		for _, e := range slice.Endpoints {
			into := serving
			if !ready(e) {
				if into = ending; e.Conditions.Serving == nil || !*e.Conditions.Serving {
					continue
				}
			}
			if len(e.Addresses) == 0 {
				continue
			}
			ip, err := netip.ParseAddr(e.Addresses[0])
			if err != nil {
				continue
			}
			for _, port := range slice.Ports {
				if port.Port == nil {
					continue
				}
				key := portKey{service: serviceOf(slice)}
				if port.Name != nil {
					key.port = *port.Name
				}
				into[key] = append(into[key], netip.AddrPortFrom(dialable(ip), uint16(*port.Port)))
			}
		}
	}
	for key, to := range ending {
		if len(serving[key]) == 0 {
			serving[key] = to
		}
	}
	for key, to := range serving {
		slices.SortFunc(to, netip.AddrPort.Compare)
		serving[key] = slices.Compact(to)
	}
	return serving
}
