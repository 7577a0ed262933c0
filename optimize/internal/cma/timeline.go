// SPDX-License-Identifier: Apache-2.0

package cma

import "slices"

// Timeline is a search to which results are told in the order of their indexes. A
// result that comes late rewinds it to a snapshot before that, after which later
// ones are told again, so that the search does not depend on when they come.
type Timeline struct {
	// Search is as of the results told.
	Search *Search
	// Last is the index of the last of them, -1 for none.
	Last int

	past []snapshot // earlier states, newest last
}

// snapshot is a search to which the results up to last were told.
type snapshot struct {
	search *Search
	last   int
}

const (
	snapshotEvery = 16 // results, at least: what is to be told again after a rewind
	keptSnapshots = 16 // to rewind to without starting over
)

// NewTimeline returns the timeline of a search that begins.
func NewTimeline(c Config) *Timeline {
	search := NewSearch(c)
	return &Timeline{Search: search, Last: -1, past: []snapshot{{search.Clone(), -1}}}
}

// Rewind takes the search back to before the result with an index.
func (t *Timeline) Rewind(index int) {
	if index > t.Last {
		return
	}
	for len(t.past) > 1 && t.past[len(t.past)-1].last >= index {
		t.past = t.past[:len(t.past)-1]
	}
	newest := t.past[len(t.past)-1]
	t.Search, t.Last = newest.search.Clone(), newest.last
}

// Tell tells the search a result, with an index greater than Last.
func (t *Timeline) Tell(index int, point []float64, value, violation float64) {
	t.Search.Tell(point, value, violation)
	t.Last = index
	if index-t.past[len(t.past)-1].last < snapshotEvery {
		return
	}
	if len(t.past) > keptSnapshots {
		t.past = slices.Delete(t.past, 1, 2) // the first is for starting over
	}
	t.past = append(t.past, snapshot{t.Search.Clone(), index})
}
