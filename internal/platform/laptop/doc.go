// SPDX-License-Identifier: Apache-2.0

// Package laptop is a whole Kubernetes in one process: etcd,
// kube-apiserver, the workload controllers of kube-controller-manager,
// kube-scheduler, Diwan's own reconcilers, and one node that runs Pods as
// processes.
//
// Everything is the code of its own authors, started in the order in which
// one needs the other:
//
//	home      one process owns a home directory (a file lock)
//	pki       a certificate authority, certificates for servers and clients
//	etcd      on a Unix socket that the user alone can open
//	apiserver on a loopback port with TLS and RBAC
//	resources CRDs, namespaces, storage class, webhooks
//	workloads jobs, deployments, garbage collection, quotas, …
//	scheduler
//	node      Pods as processes
//	operator  the reconcilers and webhooks of the domains
//
// and stopped in the reverse order. All state is in the home; a process that
// is killed at any moment is followed by one that goes on from there.
//
// Kubernetes keeps some of its settings in package variables, so a process
// starts at most one Cluster. What a domain adds to a laptop is a [Wing]; no
// reconciler imports this package, or knows where it runs.
package laptop
