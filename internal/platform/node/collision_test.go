// SPDX-License-Identifier: Apache-2.0

package node

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestCommonPort(t *testing.T) {
	t.Parallel()
	pod := func(ports ...corev1.ContainerPort) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a"}, {Name: "b", Ports: ports}}}}
	}
	tcp := func(port int32) corev1.ContainerPort { return corev1.ContainerPort{ContainerPort: port} }
	udp := func(port int32) corev1.ContainerPort {
		return corev1.ContainerPort{ContainerPort: port, Protocol: corev1.ProtocolUDP}
	}
	for _, tt := range []struct {
		reason string
		a, b   *corev1.Pod
		want   int32
	}{
		{"replicas of one job", pod(tcp(2222)), pod(tcp(2222)), 2222},
		{"the second port of one", pod(tcp(80), tcp(2222)), pod(tcp(2222)), 2222},
		{"different ports", pod(tcp(2222)), pod(tcp(2223)), 0},
		{"different protocols", pod(tcp(53)), pod(udp(53)), 0},
		{"both protocols", pod(udp(53), tcp(53)), pod(tcp(53), udp(53)), 53},
		{"no ports", pod(), pod(tcp(1)), 0},
	} {
		if got := commonPort(tt.a, tt.b); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.reason, got, tt.want)
		}
	}
}
