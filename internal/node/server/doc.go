// SPDX-License-Identifier: Apache-2.0

// Package server is the HTTPS side of the node: what kube-apiserver asks a
// kubelet for on behalf of kubectl logs, exec, attach, port-forward and top.
//
// The server knows no processes and no files. It asks a [Backend], which the
// node implements, and speaks the kubelet's protocols: query options of
// corev1.PodLogOptions, SPDY and WebSocket streams. Only clients that show a
// certificate of the given authority and a permitted name are served; everyone else gets 401,
// because whoever may exec may do all.
package server
