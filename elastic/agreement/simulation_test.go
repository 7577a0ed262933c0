// SPDX-License-Identifier: Apache-2.0

package agreement

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"diwan.dev/diwan/elastic"
)

// A simulation runs nodes on a network and a clock of its own.
type simulation struct {
	t       tester
	random  *rand.Rand
	now     time.Time
	nodes   map[string]*simulated
	flight  []packet
	loss    float64
	delay   time.Duration  // the longest
	cut     map[string]int // members with different numbers do not reach each other
	decided map[string]string
	force   time.Duration
	limit   int
	roll    bool // members that are blocked hear who may be alive
}

// tester is a test, or a case of a property.
type tester interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
	Logf(string, ...any)
}

type simulated struct {
	*Node
	paused bool
	last   elastic.View
	asked  elastic.View // when it asked for the roll
	called []string     // that roll
}

type packet struct {
	at   time.Time
	data []byte
	to   string
	from string
}

func simulate(t tester, seed uint64) *simulation {
	return &simulation{
		t: t, random: rand.New(rand.NewPCG(seed, 1)), now: time.Unix(0, 0), nodes: map[string]*simulated{},
		delay: 5 * time.Millisecond, cut: map[string]int{}, decided: map[string]string{},
	}
}

// start adds a member. The first of name w0 founds.
func (s *simulation) start(name string) string {
	id := fmt.Sprintf("%s.%d", name, len(s.decided)+s.random.IntN(1<<20))
	config := DefaultConfig(elastic.Member{ID: id, Name: name, Gossip: id + ":7946"})
	config.Found = name == "w0" && len(s.nodes) == 0
	config.FoundAfter, config.Force, config.Limit, config.Seed = 0, s.force, s.limit, s.random.Uint64()
	s.nodes[id] = &simulated{Node: New(config, s.now)}
	return id
}

// opinion tells each node who is alive: those that run and that it reaches.
func (s *simulation) opinion() {
	for _, id := range s.ids() {
		n := s.nodes[id]
		if n.paused {
			continue
		}
		var alive []elastic.Member
		for _, other := range s.ids() {
			if o := s.nodes[other]; !o.paused && s.cut[id] == s.cut[other] {
				alive = append(alive, o.config.Self)
			}
		}
		if !slices.Equal(alive, n.alive) {
			n.Alive(alive, s.now)
		}
	}
}

// guess tells each node an arbitrary set of members.
func (s *simulation) guess() {
	for _, id := range s.ids() {
		var alive []elastic.Member
		for _, other := range s.ids() {
			if s.random.IntN(3) > 0 {
				alive = append(alive, s.nodes[other].config.Self)
			}
		}
		if !s.nodes[id].paused {
			s.nodes[id].Alive(alive, s.now)
		}
	}
}

// run lets time pass, in steps of 20 ms, until a condition holds; false if it does not within the limit.
func (s *simulation) run(limit time.Duration, until func() bool) bool {
	for end := s.now.Add(limit); s.now.Before(end); s.now = s.now.Add(20 * time.Millisecond) {
		if until != nil && until() {
			return true
		}
		for _, id := range s.ids() {
			if n := s.nodes[id]; !n.paused {
				n.Tick(s.now)
				s.call(n)
				s.collect(id)
			}
		}
		s.deliver()
		s.alone()
	}
	return until == nil || until()
}

// call has a node that is blocked ask who may be alive, and tells it what it asked some time ago.
func (s *simulation) call(n *simulated) {
	if !s.roll || s.random.IntN(10) > 0 {
		return
	}
	if n.called != nil {
		n.RollCall(n.asked, n.called, s.now)
		n.called = nil
	} else if n.Blocked() {
		n.asked, n.called = n.View(), s.ids()
	}
}

// alone holds the simulation to one view that can train: one that all of its members have, and in which they reach
// each other.
func (s *simulation) alone() {
	var training []elastic.View
	for _, id := range s.ids() {
		view := s.nodes[id].View()
		if view.Rank(id) != 0 {
			continue
		}
		together := true
		for _, m := range view.IDs() {
			n := s.nodes[m]
			together = together && n != nil && !n.paused && n.View().Same(view) && s.cut[m] == s.cut[id]
		}
		if together {
			training = append(training, view)
		}
	}
	if s.force == 0 && len(training) > 1 {
		s.t.Fatalf("%v trains, and %v trains too", training[0], training[1])
	}
}

// deliver hands over what is due, in the order of arrival.
func (s *simulation) deliver() {
	slices.SortStableFunc(s.flight, func(a, b packet) int { return a.at.Compare(b.at) })
	for len(s.flight) > 0 && !s.flight[0].at.After(s.now) {
		p := s.flight[0]
		s.flight = s.flight[1:]
		n := s.nodes[p.to]
		if n == nil || s.cut[p.from] != s.cut[p.to] {
			continue
		}
		if n.paused { // the network keeps it for later
			p.at = s.now.Add(50 * time.Millisecond)
			s.flight = append(s.flight, p)
			slices.SortStableFunc(s.flight, func(a, b packet) int { return a.at.Compare(b.at) })
			continue
		}
		m, err := Decode(p.data)
		if err != nil {
			s.t.Fatalf("a node cannot read what another has written: %v\n%s", err, p.data)
		}
		n.Receive(m, s.now)
		s.collect(p.to)
	}
}

// collect puts what a node sends into flight, and holds its view to what must always be true.
func (s *simulation) collect(id string) {
	n := s.nodes[id]
	for _, m := range n.Take() {
		copies := 1
		if s.random.Float64() < s.loss {
			copies = 2 * s.random.IntN(2) // lost or doubled
		}
		for range copies {
			delay := time.Duration(s.random.Int64N(int64(s.delay) + 1))
			s.flight = append(s.flight, packet{at: s.now.Add(delay), data: Encode(m), to: m.To, from: id})
		}
	}
	view := n.View()
	if view.Same(n.last) {
		return
	}
	if view.Number != 0 && view.History == n.last.History && view.Number < n.last.Number {
		s.t.Fatalf("%s went from view %d back to %d", id, n.last.Number, view.Number)
	}
	n.last = view
	if err := view.Validate(); err != nil {
		s.t.Fatal(err)
	}
	key, value := fmt.Sprint(view.History, "/", view.Number), fmt.Sprint(view.IDs())
	if other, known := s.decided[key]; known && other != value {
		s.t.Fatalf("view %s is %s and %s", key, other, value)
	}
	s.decided[key] = value
}

func (s *simulation) ids() []string { return slices.Sorted(maps.Keys(s.nodes)) }

// agreed reports whether the given members, and no other, are in one view that all of them have.
func (s *simulation) agreed(ids ...string) bool {
	slices.Sort(ids)
	for _, id := range ids {
		if v := s.nodes[id].View(); !slices.Equal(sorted(v.IDs()), ids) || !v.Same(s.nodes[ids[0]].View()) {
			return false
		}
	}
	return true
}

func sorted(ids []string) []string {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	return ids
}

func (s *simulation) mustAgree(limit time.Duration, what string, ids ...string) {
	s.t.Helper()
	start := s.now
	if !s.run(limit, func() bool { s.opinion(); return s.agreed(ids...) }) {
		s.t.Fatalf("%s: no agreement on %v within %v\n%s", what, ids, limit, s.describe())
	}
	s.t.Logf("%s: agreed after %v", what, s.now.Sub(start))
}

func (s *simulation) describe() string {
	var lines []string
	for _, id := range s.ids() {
		n := s.nodes[id]
		lines = append(lines, fmt.Sprintf("%s: view %d of %s: %v; alive %v silent %v paused %v blocked %v", id, n.View().Number, n.View().History, n.View().IDs(),
			elastic.View{Members: n.alive}.IDs(), n.silent, n.paused, n.Blocked()))
	}
	slices.SortFunc(lines, cmp.Compare)
	return strings.Join(lines, "\n")
}
