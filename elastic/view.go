// SPDX-License-Identifier: Apache-2.0

package elastic

import (
	"fmt"
	"slices"
)

// A Member is one run of one worker. A worker that starts again is another member.
type Member struct {
	// ID is unique, even across restarts: a name and a suffix for the run.
	ID string `json:"id"`
	// Name is the worker's, such as a Pod's name. It is the same in each run.
	Name string `json:"name"`
	// Address is where other workers reach this one for collective operations, HOST:PORT.
	Address string `json:"address,omitempty"`
	// Gossip is where its agent takes part in gossip, HOST:PORT.
	Gossip string `json:"gossip,omitempty"`
	// Slots is how many processes train at the member; 0 means one.
	Slots int `json:"slots,omitempty"`
}

// A View is who trains together.
type View struct {
	// History names the chain that the view belongs to: the member that founded it, and those that
	// went on without a quorum, if any. Numbers of different histories do not compare.
	History string `json:"history"`
	// Number counts the views of a history from 1. 0 is no view.
	Number uint64 `json:"number"`
	// Members take part; a member's index is its rank. There are none once everyone has left.
	Members []Member `json:"members"`
	// Left are the IDs of members of the view before that said goodbye, Lost of those that did not answer.
	Left []string `json:"left,omitempty"`
	Lost []string `json:"lost,omitempty"`
}

// Rank returns the rank of a member, -1 if it is not in the view.
func (v View) Rank(id string) int {
	return slices.IndexFunc(v.Members, func(m Member) bool { return m.ID == id })
}

// IDs are the members' IDs by rank.
func (v View) IDs() []string {
	ids := make([]string, len(v.Members))
	for i, m := range v.Members {
		ids[i] = m.ID
	}
	return ids
}

// Same reports whether two views are the same: histories and numbers agree.
func (v View) Same(w View) bool { return v.History == w.History && v.Number == w.Number }

// Precedes reports whether a member with v should switch to w: w is later in the same history or,
// if two histories meet, in the one that is further ahead.
func (v View) Precedes(w View) bool {
	if v.Number != w.Number {
		return v.Number < w.Number
	}
	return v.History < w.History
}

// Quorum reports whether some members, by ID, may decide on the next view: more than half of them, or half
// with rank 0 among them. Any two quorums have a member in common.
func (v View) Quorum(has func(id string) bool) bool {
	votes := 0
	for rank, m := range v.Members {
		if has(m.ID) {
			votes += 2
			if rank == 0 {
				votes++
			}
		}
	}
	return votes > len(v.Members)
}

// Limits of what is accepted from the network.
const (
	maxMembers = 4096
	maxText    = 256
)

// Validate validates a received view.
func (v View) Validate() error {
	if len(v.Members) > maxMembers || len(v.Left) > maxMembers || len(v.Lost) > maxMembers {
		return fmt.Errorf("cannot use view %d: more than %d members", v.Number, maxMembers)
	}
	if len(v.History) > maxMembers {
		return fmt.Errorf("cannot use view %d: history of %d bytes", v.Number, len(v.History))
	}
	if v.Number == 0 && len(v.Members) > 0 {
		return fmt.Errorf("cannot use view 0: it has %d members", len(v.Members))
	}
	seen := map[string]bool{}
	for rank, m := range v.Members {
		if err := m.Validate(); err != nil {
			return fmt.Errorf("cannot use view %d: rank %d: %w", v.Number, rank, err)
		}
		if seen[m.ID] {
			return fmt.Errorf("cannot use view %d: %q is in it twice", v.Number, m.ID)
		}
		seen[m.ID] = true
	}
	return nil
}

// Validate validates a received member.
func (m Member) Validate() error {
	switch {
	case m.ID == "":
		return fmt.Errorf("a member without id")
	case len(m.ID) > maxText || len(m.Name) > maxText || len(m.Address) > maxText || len(m.Gossip) > maxText:
		return fmt.Errorf("id, name or an address of member %.40q is longer than %d bytes", m.ID, maxText)
	case m.Slots < 0:
		return fmt.Errorf("member %q has %d slots", m.ID, m.Slots)
	}
	return nil
}
