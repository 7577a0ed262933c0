// SPDX-License-Identifier: Apache-2.0

// Package agent runs beside a worker of an elastic training and tells it with
// whom to train.
//
// The worker connects to its agent over a local socket and gives the address at which others reach
// it. From then on it is a member: the agent gossips with the agents of the other workers
// (hashicorp/memberlist) to detect who is alive, and agrees with them on views (package
// agreement). It sends each [State] to the worker. When the worker disconnects, exits or stops
// sending heartbeats, its agent leaves on its behalf at once, so that the others need not detect
// it; when both are gone, gossip detects it.
//
// The protocol is JSON Lines, a [Request] per line in and a [Reply] per line out, so a client
// needs no library:
//
//	→ {"join":{"address":"10.0.0.7:4321"}}
//	← {"member":{"id":"worker-2.5f3a9c01","name":"worker-2",…}}
//	← {"state":{"view":{"history":"worker-0.77","number":4,"members":[…]},"rank":2,"ready":true}}
//	→ {"alive":true}                                      every second
//	→ {"broken":{"history":"worker-0.77","number":4}}     the group of view 4 is broken
//	→ {"leave":true}                                      the worker has finished
//
// A client that sends {"watch":true} instead of joining receives the states without being a
// member.
package agent
