// SPDX-License-Identifier: Apache-2.0

// Package elastic manages the membership of a training whose workers come and go.
//
// Each worker is a [Member]. The members that train together form a [View]: a
// number and a list, in which a member's position is its rank. Views are numbered
// consecutively: all members with view n have the same view n, and no member is in
// a view that it did not take part in creating. [Assign] carries ranks over from
// one view to the next, and [View.Quorum] is how many members of a view may decide
// on the next.
//
// Below it, agreement decides on views as a state machine without clock, network or
// goroutines; agent runs it beside a worker, over gossip, and informs the worker.
package elastic
