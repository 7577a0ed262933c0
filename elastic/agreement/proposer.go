// SPDX-License-Identifier: Apache-2.0

package agreement

import (
	"net"
	"slices"
	"time"

	"diwan.dev/diwan/elastic"
)

// proposal is one attempt of this node to have the next view decided on.
type proposal struct {
	ballot   Ballot
	waiting  []elastic.Member // who is expected to answer Prepare, and has not
	deadline time.Time        // when to continue without them, or to give up
	resend   time.Time
	promised map[string]elastic.Member
	leaving  map[string]bool
	earlier  elastic.View // the accepted view of the latest ballot that was told of
	in       Ballot

	view     elastic.View // the view to accept; number 0 while waiting for promises
	accepted map[string]elastic.Member
}

// propose begins an attempt: everyone who seems alive or has a vote is asked.
func (n *Node) propose() {
	p := &proposal{
		ballot:   Ballot{Round: max(n.vote.promised.Round, n.round) + 1, Proposer: n.config.Self.ID},
		deadline: n.now.Add(n.config.Answer),
		promised: map[string]elastic.Member{n.config.Self.ID: n.config.Self},
		leaving:  map[string]bool{n.config.Self.ID: n.leaving},
		earlier:  n.vote.accepted,
		in:       n.vote.acceptedIn,
		accepted: map[string]elastic.Member{},
	}
	for _, m := range n.alive {
		if m.ID != n.config.Self.ID && !n.silent[m.ID] {
			p.waiting = append(p.waiting, m)
		}
	}
	n.vote.promised, n.proposal = p.ballot, p
	n.ask()
	n.pursue()
}

// ask sends the attempt's question to those who have not answered it.
func (n *Node) ask() {
	p := n.proposal
	p.resend = n.now.Add(n.config.Retry)
	if p.view.Number == 0 {
		for _, m := range union(n.alive, n.view.Members) { // who seems dead may yet vote
			if _, answered := p.promised[m.ID]; !answered {
				n.send(m.ID, Message{Kind: Prepare, Ballot: p.ballot})
			}
		}
		return
	}
	for _, m := range n.view.Members {
		if _, answered := p.accepted[m.ID]; !answered {
			n.send(m.ID, Message{Kind: Accept, Ballot: p.ballot, View: p.view})
		}
	}
}

func (n *Node) promise(m Message) {
	p := n.proposal
	if n.behind(m) || p == nil || m.Ballot != p.ballot || p.view.Number != 0 {
		return
	}
	p.promised[m.From.ID], p.leaving[m.From.ID] = m.From, m.Leaving
	p.waiting = slices.DeleteFunc(p.waiting, func(w elastic.Member) bool { return w.ID == m.From.ID })
	if n.view.Rank(m.From.ID) >= 0 && m.View.Number == n.view.Number+1 && m.AcceptedIn.compare(p.in) > 0 {
		p.earlier, p.in = m.View, m.AcceptedIn
	}
}

// refused lets the next attempt be in a round that has a chance.
func (n *Node) refused(m Message) {
	if !n.behind(m) {
		n.round = max(n.round, m.Ballot.Round)
	}
}

func (n *Node) accepted(m Message) {
	p := n.proposal
	if n.behind(m) || p == nil || m.Ballot != p.ballot || p.view.Number == 0 {
		return
	}
	p.accepted[m.From.ID] = m.From
}

// pursue takes the attempt as far as the answers allow.
func (n *Node) pursue() {
	p := n.proposal
	late := !n.now.Before(p.deadline)
	switch {
	case n.vote.promised != p.ballot:
		n.giveUp() // this node has since made a promise to another proposer
	case p.view.Number == 0 && (len(p.waiting) == 0 || late):
		if !n.quorum(p.promised) {
			if late {
				n.withoutQuorum()
			} else if !n.now.Before(p.resend) {
				n.ask()
			}
			return
		}
		n.choose()
	case p.view.Number != 0 && n.quorum(p.accepted):
		n.decided(p.view)
	case late:
		n.giveUp()
	case !n.now.Before(p.resend):
		n.ask()
	}
}

// choose settles on the view to propose: one that may have been decided on before, or those that answered.
func (n *Node) choose() {
	p := n.proposal
	for _, m := range p.waiting {
		n.silent[m.ID] = true
	}
	view := p.earlier
	if view.Number == 0 {
		view = n.next(p)
		if !n.broken && slices.Equal(view.IDs(), n.view.IDs()) {
			n.giveUp() // nothing would change: who seems alive does not answer
			return
		}
	}
	p.view, p.deadline = view, n.now.Add(n.config.Answer)
	n.vote = vote{promised: p.ballot, acceptedIn: p.ballot, accepted: view}
	p.accepted[n.config.Self.ID] = n.config.Self
	n.ask()
	n.pursue()
}

// next is the view of those that answered and stay.
func (n *Node) next(p *proposal) elastic.View {
	view := elastic.View{History: n.view.History, Number: n.view.Number + 1}
	var present []elastic.Member
	for id, m := range p.promised {
		if !p.leaving[id] {
			present = append(present, m)
		}
	}
	view.Members = elastic.Assign(n.view.Members, present, n.config.Limit)
	for _, m := range n.view.Members {
		if _, answered := p.promised[m.ID]; !answered {
			view.Lost = append(view.Lost, m.ID)
		} else if p.leaving[m.ID] {
			view.Left = append(view.Left, m.ID)
		}
	}
	return view
}

// decided tells everyone of a view.
func (n *Node) decided(view elastic.View) {
	everyone := union(view.Members, n.view.Members, n.alive)
	n.learn(view)
	for _, m := range everyone {
		if m.ID != n.config.Self.ID {
			n.send(m.ID, Message{Kind: Learn, View: view})
		}
	}
}

// withoutQuorum waits, or continues in a history of its own if everyone else is dead, or if that is
// allowed.
func (n *Node) withoutQuorum() {
	if n.blocked.IsZero() {
		n.blocked = n.now
	}
	p := n.proposal
	if forced := n.config.Force > 0 && n.now.Sub(n.blocked) >= n.config.Force; forced || n.everyone(p.promised) {
		view := n.next(p)
		view.History += " " + n.config.Self.ID
		n.decided(view)
		return
	}
	n.giveUp()
}

// everyone reports whether all who may be alive are among the given members. A roll without this member is
// not of this job.
func (n *Node) everyone(present map[string]elastic.Member) bool {
	answered := map[string]int{}
	for _, m := range present {
		answered[hostOf(m)]++
	}
	for host, count := range n.roll {
		if answered[host] < count {
			return false
		}
	}
	return n.roll[hostOf(n.config.Self)] > 0
}

// hostOf is the host that a member gossips at.
func hostOf(m elastic.Member) string {
	host, _, _ := net.SplitHostPort(m.Gossip) // empty where it is not known
	return host
}

// giveUp ends the attempt. The next waits a random time that doubles each time, so that one of several proposers
// gets through and silent members are not asked all the time.
func (n *Node) giveUp() {
	const longest = 10 * time.Second
	n.proposal = nil
	n.backoff = min(max(2*n.backoff, n.config.Retry), longest)
	n.wait = n.now.Add(n.backoff/2 + n.jitter(n.backoff))
}

// union are the members of several lists, each once.
func union(lists ...[]elastic.Member) []elastic.Member {
	var all []elastic.Member
	seen := map[string]bool{}
	for _, list := range lists {
		for _, m := range list {
			if !seen[m.ID] {
				seen[m.ID] = true
				all = append(all, m)
			}
		}
	}
	return all
}
