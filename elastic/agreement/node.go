// SPDX-License-Identifier: Apache-2.0

package agreement

import (
	"math/rand/v2"
	"slices"
	"time"

	"diwan.dev/diwan/elastic"
)

// Config is the configuration of a [Node].
type Config struct {
	// Self is this member.
	Self elastic.Member
	// Found lets this member create the first view, with itself, if it finds no view within FoundAfter. It
	// must be set for exactly one member of a job, with a fixed name, such as index 0.
	Found bool
	// FoundAfter is how long it looks for a view first. 0 is for who knows that there is none.
	FoundAfter time.Duration
	// Limit is the greatest number of members of a view, 0 for none. The others stand by.
	Limit int
	// Settle is how long one waits for further newcomers after one has come.
	Settle time.Duration
	// Answer is how long to wait for an answer from a member that seems alive before continuing without
	// it.
	Answer time.Duration
	// Retry is the time between two sendings of the same message.
	Retry time.Duration
	// Greet is the time between two greetings, which mend what messages were lost.
	Greet time.Duration
	// Force is the time after which members without a quorum continue by themselves, 0 for never. Then two
	// sides of a network partition may both train.
	Force time.Duration
	// Seed is the seed of the random backoff that keeps proposers apart.
	Seed uint64
}

// DefaultConfig returns what fits a local network: a view holds some hundredths of a second after a
// member that is gone, some tenths after one that fell silent.
func DefaultConfig(self elastic.Member) Config {
	return Config{
		Self:       self,
		FoundAfter: 3 * time.Second, // longer than a join takes
		Settle:     200 * time.Millisecond,
		Answer:     1500 * time.Millisecond, // longer than a busy machine keeps a process from running
		Retry:      200 * time.Millisecond,
		Greet:      time.Second,
	}
}

// A Node is one member's part in the agreement. It is not safe for use by several goroutines.
type Node struct {
	config  Config
	random  *rand.Rand
	started time.Time
	now     time.Time

	view    elastic.View // the latest that is known to be decided on
	alive   []elastic.Member
	changed time.Time // when somebody came to life last
	broken  bool      // the view is to be renewed, whoever is alive
	leaving bool

	vote     vote
	proposal *proposal
	round    uint64          // the highest number known of others
	silent   map[string]bool // who seems alive and did not answer when asked last
	wait     time.Time       // no proposal before this
	backoff  time.Duration   // the next wait
	blocked  time.Time       // since when proposals have found no quorum
	roll     map[string]int  // how many workers that may be alive gossip at each host, nil if unknown
	asked    int             // whom Renew went to last, as an index of the view
	askAgain time.Time
	greeted  time.Time
	out      []Message
}

// vote is a view member's state of the decision on the next view.
type vote struct {
	promised   Ballot
	acceptedIn Ballot
	accepted   elastic.View
}

// New returns a node that knows of no view yet.
func New(config Config, now time.Time) *Node {
	return &Node{
		config:  config,
		random:  rand.New(rand.NewPCG(config.Seed, 0)),
		started: now,
		now:     now,
		alive:   []elastic.Member{config.Self},
		silent:  map[string]bool{},
	}
}

// View is the latest view that this node knows to have been decided on; its number is 0 where there is none.
func (n *Node) View() elastic.View { return n.view }

// Blocked reports whether this member waits because too few members of its view seem alive to decide
// on the next.
func (n *Node) Blocked() bool {
	return n.inView() && !n.view.Quorum(func(id string) bool { return contains(n.alive, id) })
}

// Take returns the messages to be sent, and forgets them.
func (n *Node) Take() []Message {
	out := n.out
	n.out = nil
	return out
}

// Alive tells who seems to be alive, this member included or not.
func (n *Node) Alive(members []elastic.Member, now time.Time) {
	n.now = now
	members = slices.Clone(members)
	if !contains(members, n.config.Self.ID) {
		members = append(members, n.config.Self)
	}
	for _, m := range members {
		if !contains(n.alive, m.ID) {
			n.changed, n.wait, n.backoff = now, time.Time{}, 0
		}
	}
	for _, m := range n.alive {
		if !contains(members, m.ID) {
			n.wait, n.backoff = time.Time{}, 0
		}
	}
	n.alive = members
	n.step()
}

// Renew asks for a view to follow the given one, because its members cannot work together any more. It does
// nothing if that view is not the latest.
func (n *Node) Renew(view elastic.View, now time.Time) {
	n.now = now
	if view.Same(n.view) && n.inView() {
		n.broken = true
		n.step()
	}
}

// Leave announces that the member leaves. The node keeps voting; its member may exit once it is in
// no view, or when it has waited long enough.
func (n *Node) Leave(now time.Time) {
	n.now, n.leaving = now, true
	n.step()
}

// Unreachable tells that a message could not be delivered, because nobody listens at the member's address.
func (n *Node) Unreachable(id string, now time.Time) {
	n.now = now
	if n.proposal != nil {
		n.proposal.waiting = slices.DeleteFunc(n.proposal.waiting, func(m elastic.Member) bool { return m.ID == id })
		n.step()
	}
}

// RollCall sets the gossip hosts of all workers that may be alive: members of any view and of none. A host with
// several workers is listed once per worker. Workers not listed must be permanently dead. With it, members without a
// quorum continue once everyone has answered. It must have been requested when this node had the given view, and is
// useless in another: a worker that came later may be further ahead.
func (n *Node) RollCall(view elastic.View, hosts []string, now time.Time) {
	n.now = now
	if !view.Same(n.view) {
		return
	}
	n.roll = map[string]int{}
	for _, host := range hosts {
		n.roll[host]++
	}
	n.step()
}

// Tick advances the time. Call it several times within Config.Retry.
func (n *Node) Tick(now time.Time) {
	n.now = now
	n.step()
}

// Receive takes a message.
func (n *Node) Receive(m Message, now time.Time) {
	n.now = now
	if m.To != n.config.Self.ID || m.From.ID == n.config.Self.ID {
		return
	}
	delete(n.silent, m.From.ID)
	switch m.Kind {
	case Learn:
		n.learn(m.View)
	case Hello:
		n.hello(m)
	case Renew:
		n.renewed(m)
	case Prepare:
		n.prepare(m)
	case Promise:
		n.promise(m)
	case Refuse:
		n.refused(m)
	case Accept:
		n.accept(m)
	case Accepted:
		n.accepted(m)
	}
	n.step()
}

// step does what the time and the state require.
func (n *Node) step() {
	if n.now.Sub(n.greeted) >= n.config.Greet {
		n.greeted = n.now
		n.greet()
	}
	if n.view.Number == 0 {
		if n.config.Found && !n.leaving && n.now.Sub(n.started) >= n.config.FoundAfter {
			n.learn(elastic.View{History: n.config.Self.ID, Number: 1, Members: []elastic.Member{n.config.Self}})
		}
		return
	}
	if n.proposal != nil {
		n.pursue()
	} else if n.inView() && n.outdated() {
		n.seek()
	}
}

// outdated reports whether another view is needed.
func (n *Node) outdated() bool {
	if n.broken || n.leaving {
		return true
	}
	if n.now.Before(n.wait) {
		return false
	}
	present := 0
	newcomers := false
	for _, m := range n.alive {
		if n.view.Rank(m.ID) >= 0 {
			present++
		} else if !n.silent[m.ID] {
			newcomers = true
		}
	}
	if present < len(n.view.Members) {
		return true
	}
	full := n.config.Limit > 0 && present >= n.config.Limit
	return newcomers && !full && n.now.Sub(n.changed) >= n.config.Settle
}

// seek has the view renewed: by this node if it is first among those that seem alive, by another otherwise. A node
// that does not act when asked is skipped the next time, so that one that is alive but stuck blocks nobody.
func (n *Node) seek() {
	if n.coordinator() == n.config.Self.ID {
		if !n.now.Before(n.wait) {
			n.propose()
		}
		return
	}
	if !n.broken && !n.leaving {
		return // the coordinator sees it too
	}
	if n.now.Before(n.askAgain) {
		return
	}
	n.askAgain = n.now.Add(n.config.Retry + n.jitter(n.config.Retry))
	for ; n.asked < len(n.view.Members); n.asked++ {
		m := n.view.Members[n.asked]
		if m.ID == n.config.Self.ID {
			break
		}
		if contains(n.alive, m.ID) {
			n.asked++
			n.send(m.ID, Message{Kind: Renew, Leaving: n.leaving})
			return
		}
	}
	n.asked = 0
	if !n.now.Before(n.wait) {
		n.propose()
	}
}

// renewed handles another member's request. Whoever is asked acts: the asker may know that others
// cannot.
func (n *Node) renewed(m Message) {
	if m.History != n.view.History || m.Number != n.view.Number {
		n.hello(m)
		return
	}
	if !n.inView() || n.view.Rank(m.From.ID) < 0 {
		return
	}
	n.broken = true
	if n.proposal == nil && !n.now.Before(n.wait) {
		n.propose()
	}
}

// coordinator is the first by rank of those in the view that seem alive.
func (n *Node) coordinator() string {
	for _, m := range n.view.Members {
		if contains(n.alive, m.ID) {
			return m.ID
		}
	}
	return ""
}

// learn takes over a view that has been decided on, and forgets what led to it.
func (n *Node) learn(v elastic.View) {
	if !n.view.Precedes(v) {
		return
	}
	n.view = v
	if len(v.Members) == 0 && !n.leaving { // everyone else is gone: look for a view again
		n.view, n.started = elastic.View{}, n.now
	}
	n.vote, n.proposal, n.round, n.roll, n.broken, n.asked = vote{}, nil, 0, nil, false, 0
	n.wait, n.backoff, n.blocked, n.askAgain = time.Time{}, 0, time.Time{}, time.Time{}
}

// hello brings whoever is behind up to date, or asks to be.
func (n *Node) hello(m Message) {
	sender := elastic.View{History: m.History, Number: m.Number}
	switch {
	case sender.Precedes(n.view):
		n.send(m.From.ID, Message{Kind: Learn, View: n.view})
		if p := n.proposal; p != nil && p.view.Number == 0 {
			n.send(m.From.ID, Message{Kind: Prepare, Ballot: p.ballot}) // it was behind when it was asked
		}
	case n.view.Precedes(sender):
		n.send(m.From.ID, Message{Kind: Hello})
	case n.view.Rank(m.From.ID) < 0 && contains(n.alive, m.From.ID):
		n.wait, n.backoff = time.Time{}, 0 // it answers, so ask it again
	}
}

// greet sends a Hello to someone. A part that continued without a quorum cannot rely on hearing of another, so
// it greets those that seem alive and the members of the view.
func (n *Node) greet() {
	others := slices.DeleteFunc(slices.Concat(n.alive, n.view.Members), func(m elastic.Member) bool { return m.ID == n.config.Self.ID })
	if len(others) == 0 {
		return
	}
	n.send(others[n.random.IntN(len(others))].ID, Message{Kind: Hello})
}

func (n *Node) inView() bool { return n.view.Rank(n.config.Self.ID) >= 0 }

func (n *Node) send(to string, m Message) {
	m.From, m.To, m.History, m.Number = n.config.Self, to, n.view.History, n.view.Number
	n.out = append(n.out, m)
}

func (n *Node) jitter(limit time.Duration) time.Duration {
	return time.Duration(n.random.Int64N(int64(limit) + 1))
}

func contains(members []elastic.Member, id string) bool {
	return slices.ContainsFunc(members, func(m elastic.Member) bool { return m.ID == id })
}
