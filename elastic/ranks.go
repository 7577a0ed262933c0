// SPDX-License-Identifier: Apache-2.0

package elastic

import (
	"cmp"
	"slices"
)

// Assign orders the present members by rank, given the previous ones.
//
// A survivor keeps its rank wherever that rank still exists; the gaps go to
// survivors whose rank no longer exists, then to newcomers in name order. Rank 0
// is a survivor if there is one, because many training programs broadcast the
// state of rank 0: if rank 0 left and nobody has to move, the survivor with the
// highest rank takes it. At most limit members are taken, survivors first; 0 is
// no limit. present must not hold a member twice.
func Assign(previous, present []Member, limit int) []Member {
	current := make(map[string]Member, len(present))
	for _, m := range present {
		current[m.ID] = m
	}
	var survivors []int // ranks that they had, ascending
	for rank, m := range previous {
		if _, ok := current[m.ID]; ok {
			survivors = append(survivors, rank)
		}
	}
	size := len(present)
	if limit > 0 {
		size = min(size, limit)
	}
	survivors = survivors[:min(size, len(survivors))]

	ranks := make([]Member, size)
	var movers []Member
	for _, rank := range survivors {
		member := current[previous[rank].ID]
		if rank < size {
			ranks[rank] = member
		} else {
			movers = append(movers, member)
		}
	}
	if len(survivors) > 0 && survivors[0] != 0 && len(movers) == 0 {
		last := survivors[len(survivors)-1]
		ranks[0], ranks[last] = ranks[last], Member{}
	}
	waiting := slices.Concat(movers, newcomers(previous, present))
	for rank := range ranks {
		if ranks[rank].ID == "" {
			ranks[rank], waiting = waiting[0], waiting[1:]
		}
	}
	return ranks
}

// newcomers are those present who were not there before, by name: shorter names first, so that worker-2
// precedes worker-10.
func newcomers(previous, present []Member) []Member {
	old := make(map[string]bool, len(previous))
	for _, m := range previous {
		old[m.ID] = true
	}
	fresh := slices.DeleteFunc(slices.Clone(present), func(m Member) bool { return old[m.ID] })
	slices.SortFunc(fresh, func(a, b Member) int {
		return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return fresh
}
