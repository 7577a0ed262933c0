// SPDX-License-Identifier: Apache-2.0

package laptop

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/internal/platform/domain"
	"diwan.dev/diwan/internal/platform/node/network"
)

// tokenFile holds the owner's token, for the user's programs.
const tokenFile = "token"

// startServers runs the domains' servers: for Pods at the addresses of Services, for the
// user's programs on loopback, on another port if theirs is in use.
func (c *Cluster) startServers(ctx context.Context, cfg Config, pods network.Network, servers []domain.Server) error {
	if err := c.installServices(ctx, servers); err != nil {
		return err
	}
	noticed := false
	for _, s := range servers {
		listeners := c.listenFor(pods, s)
		if taken := elsewhere(listeners, s.Port); taken.IsValid() && cfg.Notice != nil && !noticed {
			noticed = true
			cfg.Notice(fmt.Sprintf("another program has port %d of %s: what Pods send there, such as metrics that they report, goes to that program; end it and start diwan again", s.Port, taken))
		}
		if s.File != "" {
			if err := writeFile(c.home.Path(s.File), []byte(onLoopback(s.Scheme, listeners)), 0o600); err != nil {
				return err
			}
		}
		if len(listeners) == 0 {
			continue
		}
		if s.Host != "" {
			var err error
			if listeners, err = c.withTLS(s, listeners); err != nil {
				return err
			}
		}
		if err := c.background(ctx, func(ctx context.Context) (func(), error) {
			return c.supervise(ctx, func(ctx context.Context) error { return s.Serve(ctx, listeners...) }), nil
		}); err != nil {
			return err
		}
	}
	// Written last: whoever reads this token finds the addresses that belong to it, and
	// does not send it to a program that took the port of an earlier start.
	if err := writeFile(c.home.Path(tokenFile), []byte(c.owner+"\n"), 0o600); err != nil {
		return err
	}
	c.onStop(func() { os.Remove(c.home.Path(tokenFile)) })
	return nil
}

// installServices installs the servers' Services. They are headless, so that Pods
// connect from their own addresses, which identify them.
func (c *Cluster) installServices(ctx context.Context, servers []domain.Server) error {
	direct, err := client.New(c.as(operatorUser), client.Options{})
	if err != nil {
		return fmt.Errorf("cannot create a client: %w", err)
	}
	var names []types.NamespacedName
	for _, s := range servers {
		if !slices.Contains(names, s.Service) {
			names = append(names, s.Service)
		}
	}
	for _, name := range names {
		service := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name},
			Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone},
		}
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name, Labels: map[string]string{discoveryv1.LabelServiceName: name.Name}},
			AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{c.plan.Gateway().String()}}},
		}
		for _, s := range servers {
			if s.Service == name {
				service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{Name: s.Name, Port: s.Port, Protocol: corev1.ProtocolTCP})
				slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: ptr.To(s.Name), Port: ptr.To(s.Port), Protocol: ptr.To(corev1.ProtocolTCP)})
			}
		}
		for _, o := range []client.Object{service, slice} {
			if err := install(ctx, direct, o); err != nil {
				return err
			}
		}
	}
	return nil
}

// listenFor listens at the Pods' gateway and, for servers with a File, on loopback and
// on any free port if the server's own is in use.
func (c *Cluster) listenFor(pods network.Network, s domain.Server) []net.Listener {
	addresses := []netip.Addr{pods.Dialable(c.plan.Gateway())}
	if s.File != "" {
		addresses = slices.Compact(append(addresses, netip.AddrFrom4([4]byte{127, 0, 0, 1})))
	}
	var listeners []net.Listener
	for _, ip := range addresses {
		listener, err := pods.Listen("tcp4", netip.AddrPortFrom(ip, uint16(s.Port)).String())
		if err != nil && s.File != "" {
			listener, err = pods.Listen("tcp4", netip.AddrPortFrom(ip, 0).String())
		}
		if err != nil {
			klog.Background().Info("Programs cannot reach a server at one address", "server", s.Name, "reason", err.Error())
			continue
		}
		listeners = append(listeners, listener)
	}
	return listeners
}

// elsewhere returns the address on the Pods' network at which another program uses the
// port, or the zero Addr.
func elsewhere(listeners []net.Listener, port int32) netip.Addr {
	for _, l := range listeners {
		if at := l.Addr().(*net.TCPAddr).AddrPort(); !at.Addr().IsLoopback() && int32(at.Port()) != port {
			return at.Addr()
		}
	}
	return netip.Addr{}
}

// withTLS adds TLS with a certificate for the server's Host.
func (c *Cluster) withTLS(s domain.Server, listeners []net.Listener) ([]net.Listener, error) {
	if err := c.keys.server(s.Name, s.Host); err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(c.keys.file(s.Name), c.keys.file(s.Name))
	if err != nil {
		return nil, fmt.Errorf("cannot read the certificate of %s: %w", s.Name, err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	secure := make([]net.Listener, len(listeners))
	for i, l := range listeners {
		secure[i] = tls.NewListener(l, config)
	}
	return secure, nil
}

// onLoopback returns a line with the loopback address of listeners, which is the last
// one.
func onLoopback(scheme string, listeners []net.Listener) string {
	if len(listeners) == 0 {
		return ""
	}
	return scheme + listeners[len(listeners)-1].Addr().String() + "\n"
}
