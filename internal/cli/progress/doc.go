// SPDX-License-Identifier: Apache-2.0

// Package progress turns what is seen of running work into what a user reads.
//
// The model is one [Work] for each object that is followed: an Experiment, a Job or a Pod. It is
// fed with facts ([Work.SetStatus], [Work.SetTrial]) and answers with the [Event] values that they
// amount to; [Work.View] is a snapshot of everything that is worth showing. Renderers are pure
// functions of views and events:
//
//	facts → Work ─ events ─→ Line       one line each, where there is no terminal
//	             └ View ───→ Block      a few lines that are redrawn in place
//	                     ├─→ Summary    one line
//	                     ├─→ Result     the block at the end
//	                     └─→ Report     the JSON object at the end
//
// Nothing here reads a clock, an API or a terminal's size: the caller gives them. A Work is not
// safe for concurrent use.
package progress
