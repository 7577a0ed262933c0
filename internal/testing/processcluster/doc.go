// SPDX-License-Identifier: Apache-2.0

// Package processcluster provides tests with a Kubernetes cluster that is not
// Diwan's: etcd, kube-apiserver, kube-controller-manager, kube-scheduler and a
// node, each a separate process with its own credentials, as an administrator
// would set them up. It shares neither a process nor a secret with package
// localcluster.
//
//	cluster := processcluster.New(t, processcluster.Config{
//		Images:  []image.Entry{{Image: "diwan", Command: []string{"/path/to/diwan"}}},
//	})
//	client, err := kubernetes.NewForConfig(cluster.Admin())
//
// The node is Diwan's, without the collector: its Pods are processes, their
// images mean what Config.Images says, and what they print is read by nobody.
// Services have cluster IPs that this machine reaches too, so that the API
// server finds webhooks in Pods; this needs Linux and root privileges.
//
// Parts may be killed and started again, and users get client certificates.
package processcluster
