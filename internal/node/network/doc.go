// SPDX-License-Identifier: Apache-2.0

// Package network connects Pods on one machine: addresses, names and Services.
//
// # Ways to run
//
// Namespaces (Linux, with the rights of root): each Pod has a network namespace
// with loopback and one veth to a bridge of this home. Making a namespace takes
// milliseconds and removing one takes longer, so they live in a pool: a Pod takes
// a ready one and its successor takes it again, if the Pod left no trace in it (no
// sockets, not even in TIME_WAIT, and the same routes). A namespace is
// held by a file descriptor of this process and by the processes in it, never by
// a mount: when all of them are gone the kernel removes it with its veth, so a
// killed node leaves no namespace behind, and a restarted node finds the
// namespaces of its living Pods through /proc ([Network.Restore]).
//
// Namespaces of a user (Linux, in a user namespace; see package rootless): the
// same, but the bridge has a network namespace beside the machine's, because that
// may not be changed. This process opens sockets on either side, by
// [Network].DialContext and Listen, and carries what Pods send to the outside
// (exit). Programs outside of this process do not reach Pods' addresses. The bridge lives
// as long as this process or a container, which keeps it open by [Sandbox.Hold].
//
// Loopback (Linux without rights): Pods run in the host's network. Each has an
// own address 127.a.b.c ([Sandbox.Bind]), on which a program must listen if several
// Pods use the same port; a program that listens on all addresses takes the port
// for the whole machine. The Kubernetes API shows 10.a.b.c instead, because
// EndpointSlices refuse loopback addresses.
//
// Host (elsewhere, as on macOS): as Loopback, with 127.0.0.1 for every Pod.
//
// # Names and Services
//
// [Hosts] renders the hosts file of a Pod from Services and EndpointSlices, and
// [Names] keeps the files fresh. [Proxy] accepts connections on cluster IPs and
// node ports and forwards them to ready endpoints. Both cost nothing while there
// are no Services.
//
// Outside names: where the machine's nameserver listens on loopback (as
// systemd-resolved does) Pods in namespaces cannot reach it; the network then
// answers on port 53 of its own address, [Network.Nameserver], and [ResolvConf] is the file
// to mount at /etc/resolv.conf.
//
// # Wiring
//
//	plan, err := network.PlanFor(home)          // plan.Services is --service-cluster-ip-range
//	n, err := network.New(network.Default(plan))
//	factory := informers.NewSharedInformerFactory(client, 0)
//	names, err := network.NewNames(factory, n, log)
//	proxy, err := network.NewProxy(factory, n, apiServer, log)
//	factory.Start(ctx.Done())
//	go names.Run(ctx)                           // names is the node's Hosts
//	go proxy.Run(ctx)
//	…                                           // the node runs, and ends
//	n.Close()
//
// With n.ClusterIPs(), Pods reach the API server at the first address of
// plan.Services, port 443; without, at the API server's own address.
//
// # Limits
//
// IPv4 alone. Forwarding is switched on for the bridge and for the devices of the
// default route when the network starts, and stays on. A firewall that drops
// forwarded or incoming packets (ufw, Docker's FORWARD policy) also drops those
// of Pods; allow the devices diwan-*. A namespace has its own loopback: a
// program that needs a server on the machine's 127.0.0.1 uses hostNetwork. Pods
// see the node's address as the client of a Service. On loopback addresses, cluster IPs
// do not work, and names lead to Pods.
//
// In a user namespace a connection to the outside is accepted before the other
// side is asked: where nobody listens, a Pod sees a connection that is reset. Only TCP
// and UDP leave the bridge.
//
// # Subnets
//
// [Plan] chooses the subnets of Pods and Services: stable for a home and distinct between
// homes, so that several clusters share a machine.
package network
