// SPDX-License-Identifier: Apache-2.0

// Package agreement lets members agree on views.
//
// A [Node] is one member's state machine: its inputs are who seems to be alive,
// messages and the time; its outputs are messages to send and the current view. It has
// no clock, network or goroutines, so tests run thousands of histories with loss,
// delay, partitions and pauses.
//
// The members of view n decide on view n+1, in one instance of Paxos:
//
//   - When view n is outdated (a worker joined, left or died, or the collective
//     group is broken), the first member by rank among those that seem alive asks
//     everyone whom it would include: Prepare.
//   - Each answers with what it has accepted before, if anything: Promise. Whoever
//     does not answer in time is left out, so a view has only members that took part
//     in creating it. A leaving member says so here.
//   - With a quorum of view n behind it, the proposer has that quorum accept the view:
//     Accept, Accepted. Now it is decided, and everyone is told: Learn.
//
// Any two quorums of a view share a member, so there is at most one view n+1, whatever
// is lost, delayed or paused; votes are kept in memory only, because a restarted
// member is a new member. A part of view n without a quorum waits: it cannot continue
// training either, since a collective operation of view n needs all its members. Only
// if Config.Force allows it does such a part continue by itself, in a history of its
// own.
package agreement
