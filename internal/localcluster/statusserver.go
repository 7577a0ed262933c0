// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/internal/controller/trainjob"
	"diwan.dev/diwan/internal/node/network"
	"diwan.dev/diwan/internal/operator"
	"diwan.dev/diwan/internal/statusserver"
)

// Where Pods of TrainJobs tell how far they are, by Kubeflow Trainer's names.
const (
	statusService  = "kubeflow-trainer-controller-manager"
	statusHost     = statusService + "." + trainerNamespace + ".svc"
	statusPort     = 10443
	statusPortName = "status-server"
)

// statusServerService is the Service by which Pods find that.
func statusServerService(plan network.Plan) []client.Object {
	return []client.Object{
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: trainerNamespace, Name: statusService},
			Spec: corev1.ServiceSpec{
				ClusterIP: corev1.ClusterIPNone,
				Ports:     []corev1.ServicePort{{Name: statusPortName, Port: statusPort, Protocol: corev1.ProtocolTCP}},
			},
		},
		&discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: trainerNamespace, Name: statusService, Labels: map[string]string{discoveryv1.LabelServiceName: statusService}},
			AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{plan.Gateway().String()}}},
			Ports:       []discoveryv1.EndpointPort{{Name: ptr.To(statusPortName), Port: ptr.To[int32](statusPort), Protocol: ptr.To(corev1.ProtocolTCP)}},
		},
	}
}

// statusServer is how Pods reach it.
func (c *Cluster) statusServer() trainjob.StatusServer {
	return trainjob.StatusServer{
		URL:         "https://" + net.JoinHostPort(statusHost, strconv.Itoa(statusPort)),
		Authorities: func() ([]byte, error) { return c.keys.authority(), nil },
	}
}

// startStatusServer takes what Pods tell, at the address of the Service, unless
// another process has the port there.
func (c *Cluster) startStatusServer(ctx context.Context, pods network.Network, op *operator.Operator) error {
	if err := c.keys.server(pairStatus, statusHost); err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(c.keys.file(pairStatus), c.keys.file(pairStatus))
	if err != nil {
		return fmt.Errorf("cannot read the certificate of the status server: %w", err)
	}
	listener, err := pods.Listen("tcp4", netip.AddrPortFrom(pods.Dialable(c.plan.Gateway()), statusPort).String())
	if err != nil {
		klog.Background().Info("TrainJobs cannot tell how far they are", "reason", err.Error())
		return nil
	}
	server := statusserver.Server(op.StatusHandler())
	server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	return c.background(ctx, func(ctx context.Context) (func(), error) {
		return c.supervise(ctx, func(ctx context.Context) error {
			defer context.AfterFunc(ctx, func() { _ = server.Close() })()
			if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
				return fmt.Errorf("the status server ended: %w", err)
			}
			return nil
		}), nil
	})
}
