// SPDX-License-Identifier: Apache-2.0

// Package agreement has members agree on views.
//
// A [Node] is one member's part in it: a state machine that is told who seems to
// be alive, which messages came and what time it is, and that says which messages
// to send and which view holds. It has no clock, network or goroutines, so tests
// run thousands of histories with loss, delay, partitions and pauses.
//
// View n+1 is decided on by the members of view n, in one instance of Paxos:
//
//   - Who sees that view n no longer fits (someone came, went, fell silent, or
//     reports that the collective group is broken) and is first by rank among those
//     that seem alive, asks everyone that it would have: Prepare.
//   - Each answers with what it has accepted before, if anything: Promise. Who does
//     not answer in time is left out, so a view has only members that took part in
//     making it. Whoever is leaving says so here.
//   - With a quorum of view n behind it, the proposer has that quorum accept the view:
//     Accept, Accepted. Now it is decided, and everyone is told: Learn.
//
// Any two quorums of a view share a member, so there is at most one view n+1,
// whatever is lost, delayed or paused; votes are kept in memory alone, because a
// member that starts again is another member. A part of view n that has no quorum
// waits: it cannot train on either, since a collective operation of view n needs
// every member of it. Only where Config.Force allows it does such a part go on by
// itself, as a history of its own.
package agreement
