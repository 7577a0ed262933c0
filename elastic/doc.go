// SPDX-License-Identifier: Apache-2.0

// Package elastic is about who takes part in a training, while workers come and go.
//
// Each worker is a [Member]. The members that train together form a [View]: a
// number and a list, in which a member's place is its rank. Views follow each
// other one at a time: whoever has view n has the same view n, and no member is
// in a view that it did not take part in making. How ranks pass from one view to
// the next is [Assign], and how many members of a view may decide on the next is
// [View.Quorum].
//
// Below it, agreement decides on views as a state machine without clock, network
// or goroutines; agent runs it beside a worker, over gossip, and tells the worker.
package elastic
