// SPDX-License-Identifier: Apache-2.0

package agreement

import "diwan.dev/diwan/elastic"

// behind first brings sender and receiver of a message about the next view to the same view. It reports
// whether they differed.
func (n *Node) behind(m Message) bool {
	if m.History == n.view.History && m.Number == n.view.Number {
		return false
	}
	n.hello(m)
	return true
}

// prepare answers a proposer: with a promise to ignore earlier ballots and, from a member of the
// view, with what it has accepted. A newcomer's answer shows that it exists.
func (n *Node) prepare(m Message) {
	if n.behind(m) {
		return
	}
	if m.Ballot.compare(n.vote.promised) < 0 {
		n.send(m.From.ID, Message{Kind: Refuse, Ballot: n.vote.promised})
		return
	}
	n.vote.promised = m.Ballot
	n.wait = n.now.Add(n.config.Answer + n.config.Retry + n.jitter(n.config.Retry)) // let it come to an end
	n.send(m.From.ID, Message{Kind: Promise, Ballot: m.Ballot, View: n.vote.accepted, AcceptedIn: n.vote.acceptedIn, Leaving: n.leaving})
}

// accept accepts a view, unless it has promised to accept only later ballots.
func (n *Node) accept(m Message) {
	if n.behind(m) || !n.inView() || m.View.Number != n.view.Number+1 || m.Ballot.compare(n.vote.promised) < 0 {
		return
	}
	n.vote = vote{promised: m.Ballot, acceptedIn: m.Ballot, accepted: m.View}
	n.send(m.From.ID, Message{Kind: Accepted, Ballot: m.Ballot})
}

// quorum reports whether the given members may decide on the next view.
func (n *Node) quorum(votes map[string]elastic.Member) bool {
	return n.view.Quorum(func(id string) bool { _, ok := votes[id]; return ok })
}
