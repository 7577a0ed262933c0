// SPDX-License-Identifier: Apache-2.0

// Package progress turns observations of running work into output for the user.
//
// The model is one [Work] per followed object: an Experiment, a Job or a Pod. It is fed with facts
// ([Work.SetStatus], [Work.SetTrial]) and returns the resulting [Event] values; [Work.View] is a
// snapshot of everything worth showing. Renderers are pure functions of views and events:
//
//	facts → Work ─ events ─→ Line       one line each, where there is no terminal
//	             └ View ───→ Block      a few lines that are redrawn in place
//	                     ├─→ Summary    one line
//	                     ├─→ Result     the block at the end
//	                     └─→ Report     the JSON object at the end
//
// Nothing here reads a clock, an API or a terminal's size: the caller passes them. A Work is not
// safe for concurrent use.
package progress
