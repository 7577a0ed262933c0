// SPDX-License-Identifier: Apache-2.0

// Package network connects Pods on one machine: addresses, names and Services.
//
// # Ways to run
//
// Namespaces (Linux, as root): each Pod has a network namespace with loopback and one veth to this
// home's bridge. Creating a namespace takes milliseconds and removing one takes longer, so they are
// pooled: a Pod takes a ready one, and a later Pod reuses it if the first left no trace in it (no
// sockets, not even in TIME_WAIT, and the same routes). A namespace is held by a file descriptor of this
// process and by the processes in it, never by a mount: when all of them are gone the kernel removes it
// with its veth, so a killed node leaves no namespace behind, and a restarted node finds the namespaces
// of its running Pods through /proc ([Network.Restore]).
//
// User namespaces (Linux, in a user namespace; see package rootless): the same, but the bridge has its
// own network namespace, because the machine's may not be changed. This process opens sockets on either
// side, with [Network].DialContext and Listen, and forwards the Pods' outbound traffic (exit). Programs
// outside this process cannot reach Pods' addresses. The bridge lives as long as this process or a
// container, which keeps it open with [Sandbox.Hold].
//
// Loopback (Linux, unprivileged): Pods run in the host network. Each has its own address 127.a.b.c
// ([Sandbox.Bind]), on which a program must listen if several Pods use the same port; a program that
// listens on all addresses takes the port for the whole machine. The Kubernetes API shows 10.a.b.c
// instead, because EndpointSlices reject loopback addresses.
//
// Host (elsewhere, as on macOS): as Loopback, with 127.0.0.1 for every Pod.
//
// # Names and Services
//
// [Hosts] renders the hosts file of a Pod from Services and EndpointSlices, and [Names] keeps the files
// up to date. [Proxy] accepts connections on cluster IPs and node ports and forwards them to ready
// endpoints. Both cost nothing while there are no Services.
//
// External names: if the machine's nameserver listens on loopback (as systemd-resolved does), Pods in
// namespaces cannot reach it; the network then answers on port 53 of its own address,
// [Network.Nameserver], and [ResolvConf] is the file to mount at /etc/resolv.conf.
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
// IPv4 only. Forwarding is enabled for the bridge and for the devices of the default route when the
// network starts, and stays enabled. The veth of a Pod that left connections open disappears when the
// kernel drops them, a few minutes later at most. A firewall that drops forwarded or incoming packets
// (ufw, Docker's FORWARD policy) also drops those of Pods; allow the devices diwan-*. A namespace has
// its own loopback: a program that needs a server on the machine's 127.0.0.1 must use hostNetwork. Pods
// see the node's address as the client of a Service. With loopback addresses, cluster IPs do not work,
// and names resolve to Pods.
//
// In a user namespace an outbound connection is accepted before the remote side is contacted: if nobody
// listens there, a Pod sees a connection reset. Only TCP and UDP leave the bridge.
//
// # Subnets
//
// [Plan] chooses the subnets of Pods and Services: stable for a home and distinct between homes, so that
// several clusters can share a machine.
package network
