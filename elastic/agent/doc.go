// SPDX-License-Identifier: Apache-2.0

// Package agent runs beside a worker of an elastic training and tells it with
// whom to train.
//
// The worker attaches to its agent by a socket of the same machine and says
// where the others reach it. From then on it is a member: the agent gossips with
// the agents of the other workers (hashicorp/memberlist), which gives it an idea
// of who is alive, and agrees with them on views (package agreement). It sends
// each [State] to the worker. When the worker detaches, ends or falls silent, its
// agent takes leave for it at once, so that the others need not find out; when
// both are gone, gossip finds out.
//
// The socket speaks lines of JSON, a [Request] each way in and a [Reply] each way
// out, so that a client needs no library. What it says:
//
//	→ {"join":{"address":"10.0.0.7:4321"}}
//	← {"member":{"id":"worker-2.5f3a9c01","name":"worker-2",…}}
//	← {"state":{"view":{"history":"worker-0.77","number":4,"members":[…]},"rank":2,"ready":true}}
//	→ {"alive":true}                                      every second
//	→ {"broken":{"history":"worker-0.77","number":4}}     the group of view 4 does not work any more
//	→ {"leave":true}                                      the worker has finished
//
// Whoever sends {"watch":true} instead of joining is told the states, and is no member.
package agent
