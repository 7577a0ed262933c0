// SPDX-License-Identifier: Apache-2.0

package processcluster

import (
	"net/netip"
)

// Part is a process of the cluster.
type Part string

// The parts.
const (
	Etcd              Part = "etcd"
	APIServer         Part = "kube-apiserver"
	ControllerManager Part = "kube-controller-manager"
	Scheduler         Part = "kube-scheduler"
	Node              Part = "node"
	// SecondNode is a node that AddNode adds.
	SecondNode Part = "node-2"
)

// NodeName is the name of the cluster's first Node. Those of others, too, are what
// their parts are called.
const NodeName = string(Node)

// groups has the cluster serve PodGroups, and its scheduler place them.
const groups = "--feature-gates=GenericWorkload=true"

// arguments are those with which a part starts, each time the same.
func (c *Cluster) arguments(part Part) []string {
	k := c.keys
	switch part {
	case Etcd:
		return []string{"--dir=" + c.path("etcd")}
	case APIServer:
		return []string{
			"--etcd-servers=unix://" + c.path("etcd", "client.sock"),
			"--bind-address=127.0.0.1",
			"--advertise-address=" + c.plan.Gateway().String(),
			"--endpoint-reconciler-type=none", // the node leads Pods here
			"--secure-port=" + c.port(),
			"--tls-cert-file=" + k.file(string(APIServer)),
			"--tls-private-key-file=" + k.file(string(APIServer)),
			"--client-ca-file=" + k.authority(),
			"--authorization-mode=Node,RBAC",
			"--kubelet-client-certificate=" + k.file(toKubelet),
			"--kubelet-client-key=" + k.file(toKubelet),
			"--kubelet-certificate-authority=" + k.authority(),
			"--kubelet-preferred-address-types=InternalIP",
			"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
			"--service-account-key-file=" + k.accounts(),
			"--service-account-signing-key-file=" + k.accounts(),
			"--service-cluster-ip-range=" + c.plan.Services.String(),
			groups,
			"--runtime-config=scheduling.k8s.io/v1beta1=true",
			// Watches never end by themselves, so a stop would wait for them.
			"--shutdown-delay-duration=0s",
		}
	case ControllerManager:
		return append([]string{
			"--kubeconfig=" + k.kubeconfig(string(ControllerManager)),
			"--authentication-kubeconfig=" + k.kubeconfig(string(ControllerManager)),
			"--authorization-kubeconfig=" + k.kubeconfig(string(ControllerManager)),
			"--secure-port=0",
			"--leader-elect=false",
			"--use-service-account-credentials=true",
			"--service-account-private-key-file=" + k.accounts(),
			"--root-ca-file=" + k.authority(),
			groups,
		}, c.cfg.Controllers...)
	case Scheduler:
		return []string{
			"--kubeconfig=" + k.kubeconfig(string(Scheduler)),
			"--authentication-kubeconfig=" + k.kubeconfig(string(Scheduler)),
			"--authorization-kubeconfig=" + k.kubeconfig(string(Scheduler)),
			"--secure-port=0",
			"--leader-elect=false",
			groups,
		}
	default:
		arguments := []string{
			"--home=" + c.home(part),
			"--name=" + string(part),
			"--kubeconfig=" + k.kubeconfig(nodeUser),
			"--client-ca-file=" + k.authority(),
			"--tls-file=" + k.file(kubelet),
			"--api-server-user=" + toKubelet,
		}
		if part != Node {
			arguments = append(arguments, "--services="+c.plan.Services.String())
		}
		return arguments
	}
}

// command is what the program is told to be.
func (p Part) command() string {
	if p == SecondNode {
		p = Node
	}
	return string(p)
}

// home is the directory of a node.
func (c *Cluster) home(node Part) string { return c.path(string(node)) }

func portOf(address string) uint16 {
	return netip.MustParseAddrPort(address).Port()
}
