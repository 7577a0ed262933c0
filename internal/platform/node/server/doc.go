// SPDX-License-Identifier: Apache-2.0

// Package server is the node's HTTPS server: what kube-apiserver requests from a kubelet for
// kubectl logs, exec, attach, port-forward and top.
//
// The server knows no processes and no files. It calls a [Backend], which the node
// implements, and implements the kubelet's protocols: query options of corev1.PodLogOptions,
// SPDY and WebSocket streams. Only clients with a certificate of the given CA and a permitted
// name are served; everyone else gets 401, because exec amounts to full access.
package server
