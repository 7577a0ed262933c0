// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/internal/controller"
	"diwan.dev/diwan/internal/dbmanager"
	"diwan.dev/diwan/internal/dbmanager/access"
	"diwan.dev/diwan/internal/node/network"
	"diwan.dev/diwan/observation"
)

// dbManagerService is the Service by which Pods find the DBManager, by Katib's
// name. It is headless, so that Pods speak to it from their own addresses, by
// which they are known.
func dbManagerService(plan network.Plan) []client.Object {
	const namespace, name, port = "kubeflow", "katib-db-manager", "api"
	return []client.Object{
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec: corev1.ServiceSpec{
				ClusterIP: corev1.ClusterIPNone,
				Ports:     []corev1.ServicePort{{Name: port, Port: dbmanager.Port, Protocol: corev1.ProtocolTCP}},
			},
		},
		&discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: name}},
			AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{plan.Gateway().String()}}},
			Ports:       []discoveryv1.EndpointPort{{Name: ptr.To(port), Port: ptr.To[int32](dbmanager.Port), Protocol: ptr.To(corev1.ProtocolTCP)}},
		},
	}
}

// startDBManager serves what trials report and clients read: to Pods at the
// address of the Service, to the user's programs also at Katib's port on
// loopback, unless another process has it.
func (c *Cluster) startDBManager(ctx context.Context, pods network.Network, store observation.Store, trials client.Reader) error {
	scheme, err := controller.NewScheme()
	if err != nil {
		return err
	}
	api, err := client.New(c.as(operatorUser), client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("cannot make a client: %w", err)
	}
	var listeners []net.Listener
	addresses := []netip.Addr{pods.Dialable(c.plan.Gateway()), netip.AddrFrom4([4]byte{127, 0, 0, 1})}
	for _, ip := range slices.Compact(addresses) {
		listener, err := net.Listen("tcp4", netip.AddrPortFrom(ip, dbmanager.Port).String())
		if err != nil {
			klog.Background().Info("Metrics cannot be reported or read by gRPC at one address", "reason", err.Error())
			continue
		}
		listeners = append(listeners, listener)
	}
	who := access.New(trials, api)
	who.Local = access.SameUser
	server := dbmanager.New(dbmanager.DefaultConfig(store, who))
	return c.background(ctx, func(ctx context.Context) (func(), error) {
		return c.supervise(ctx, func(ctx context.Context) error {
			if err := server.Serve(ctx, listeners...); err != nil {
				return err
			}
			<-ctx.Done() // also without a listener
			return nil
		}), nil
	})
}
