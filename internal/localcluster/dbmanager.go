// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	askapi "diwan.dev/diwan/api/asktell/v1"
	"diwan.dev/diwan/internal/asktell"
	"diwan.dev/diwan/internal/controller"
	"diwan.dev/diwan/internal/dbmanager"
	"diwan.dev/diwan/internal/dbmanager/access"
	"diwan.dev/diwan/internal/node/network"
	"diwan.dev/diwan/internal/operator"
	"diwan.dev/diwan/observation"
)

// dbManagerService is the Service by which Pods find the DBManager, by Katib's
// name. It is headless, so that Pods speak to it from their own addresses, by
// which they are known.
func dbManagerService(plan network.Plan) []client.Object {
	const namespace, name, port, askPort = "kubeflow", "katib-db-manager", "api", "ask"
	return []client.Object{
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec: corev1.ServiceSpec{
				ClusterIP: corev1.ClusterIPNone,
				Ports: []corev1.ServicePort{
					{Name: port, Port: dbmanager.Port, Protocol: corev1.ProtocolTCP},
					{Name: askPort, Port: asktell.Port, Protocol: corev1.ProtocolTCP},
				},
			},
		},
		&discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: name}},
			AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{plan.Gateway().String()}}},
			Ports: []discoveryv1.EndpointPort{
				{Name: ptr.To(port), Port: ptr.To[int32](dbmanager.Port), Protocol: ptr.To(corev1.ProtocolTCP)},
				{Name: ptr.To(askPort), Port: ptr.To[int32](asktell.Port), Protocol: ptr.To(corev1.ProtocolTCP)},
			},
		},
	}
}

// startDBManager serves what trials report and clients read, and hands out the
// trials that programs ask for: to Pods at the address of the Service, to the
// user's programs on loopback, at another port where another process has this one.
func (c *Cluster) startDBManager(ctx context.Context, pods network.Network, store observation.Store, op *operator.Operator) error {
	scheme, err := controller.NewScheme()
	if err != nil {
		return err
	}
	api, err := client.New(c.as(operatorUser), client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("cannot make a client: %w", err)
	}
	addresses := slices.Compact([]netip.Addr{pods.Dialable(c.plan.Gateway()), netip.AddrFrom4([4]byte{127, 0, 0, 1})})
	who := access.New(op.Reader(), api)
	who.Local = access.SameUser
	asked := op.AskTell(api, who)
	config := dbmanager.DefaultConfig(store, who)
	config.Warn = op.Warn
	config.Beside = func(r grpc.ServiceRegistrar) { askapi.RegisterAskTellServer(r, asked) }
	server := dbmanager.New(config)
	reports, questions := listenAll(pods, addresses, dbmanager.Port), listenAll(pods, addresses, asktell.Port)
	for file, text := range map[string]string{"db-manager-address": onLoopback("", reports), "ask-url": onLoopback("http://", questions)} {
		if err := writeFile(c.home.Path(file), []byte(text), 0o600); err != nil {
			return err
		}
	}
	for _, serve := range []func(context.Context) error{
		asked.Follow,
		func(ctx context.Context) error { return server.Serve(ctx, reports...) },
		func(ctx context.Context) error { return asked.ServeHTTP(ctx, questions...) },
	} {
		if err := c.background(ctx, func(ctx context.Context) (func(), error) {
			return c.supervise(ctx, func(ctx context.Context) error {
				if err := serve(ctx); err != nil {
					return err
				}
				<-ctx.Done() // also without a listener
				return nil
			}), nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// listenAll listens on a port of each address where that is free, or else on any
// other.
func listenAll(pods network.Network, addresses []netip.Addr, port uint16) []net.Listener {
	var listeners []net.Listener
	for _, ip := range addresses {
		listener, err := pods.Listen("tcp4", netip.AddrPortFrom(ip, port).String())
		if err != nil {
			listener, err = pods.Listen("tcp4", netip.AddrPortFrom(ip, 0).String())
		}
		if err != nil {
			klog.Background().Info("Programs cannot report, read or ask at one address", "reason", err.Error())
			continue
		}
		listeners = append(listeners, listener)
	}
	return listeners
}

// onLoopback is a line for a file of the home that tells the user's programs where
// to find what listens, on loopback: the last address.
func onLoopback(scheme string, listeners []net.Listener) string {
	if len(listeners) == 0 {
		return ""
	}
	return scheme + listeners[len(listeners)-1].Addr().String() + "\n"
}
