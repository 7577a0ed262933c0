// SPDX-License-Identifier: Apache-2.0

// Package halving is successive halving: which configurations of a search get more
// of a resource.
//
// A bracket has rungs, each with more of the resource than the one below. It begins
// with some configurations on one rung, and the best part 1/eta of those on a rung
// come to the next. A [Board] has the runs of configurations by bracket and rung,
// and decides which comes next, as Hyperband or ASHA does.
package halving
