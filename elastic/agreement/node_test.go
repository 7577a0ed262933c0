// SPDX-License-Identifier: Apache-2.0

package agreement

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"diwan.dev/diwan/elastic"
)

// group starts members w0, w1, … and waits until they are one view.
func group(t tester, s *simulation, size int) []string {
	t.Helper()
	var ids []string
	for i := range size {
		ids = append(ids, s.start(fmt.Sprint("w", i)))
	}
	s.mustAgree(10*time.Second, "start", slices.Clone(ids)...)
	return ids
}

func TestStartGivesRanksByName(t *testing.T) {
	t.Parallel()
	s := simulate(t, 1)
	ids := group(t, s, 5)
	if diff := cmp.Diff(ids, s.nodes[ids[0]].View().IDs()); diff != "" {
		t.Error(diff)
	}
	if number := s.nodes[ids[0]].View().Number; number != 2 {
		t.Errorf("it took %d views, want two: the founder's, and one with those that came at once", number)
	}
}

func TestKilled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		size   int
		killed []int
		reason string
	}{
		{3, []int{2}, "the last"},
		{3, []int{0}, "the coordinator"},
		{2, []int{1}, "half, with rank 0 left"},
		{5, []int{0, 1}, "two of five, the coordinator and its successor among them"},
	} {
		s := simulate(t, 2)
		ids := group(t, s, c.size)
		left := slices.Clone(ids)
		for _, i := range c.killed {
			delete(s.nodes, ids[i])
			left = slices.DeleteFunc(left, func(id string) bool { return id == ids[i] })
		}
		s.mustAgree(5*time.Second, c.reason, left...)
		var lost []string
		for _, i := range c.killed {
			lost = append(lost, ids[i])
		}
		if diff := cmp.Diff(lost, s.nodes[left[0]].View().Lost); diff != "" {
			t.Errorf("%s: the lost ones are not named: %s", c.reason, diff)
		}
	}
}

func TestWithoutQuorumNobodyGoesOn(t *testing.T) {
	t.Parallel()
	s := simulate(t, 3)
	ids := group(t, s, 4)
	before := s.nodes[ids[3]].View()
	delete(s.nodes, ids[0])
	delete(s.nodes, ids[1])
	s.run(30*time.Second, func() bool { s.opinion(); return false })
	for _, id := range ids[2:] {
		if diff := cmp.Diff(before, s.nodes[id].View()); diff != "" {
			t.Errorf("two of four without rank 0 went on: %s", diff)
		}
		if !s.nodes[id].Blocked() {
			t.Errorf("%s does not say that it is blocked", id)
		}
	}
}

func TestForce(t *testing.T) {
	t.Parallel()
	s := simulate(t, 4)
	s.force = 5 * time.Second
	ids := group(t, s, 4)
	for i := range 3 {
		delete(s.nodes, ids[i])
	}
	s.mustAgree(20*time.Second, "one of four, by force", ids[3])
	if history := s.nodes[ids[3]].View().History; history == ids[0] {
		t.Error("who goes on without a quorum must do so in a history of its own")
	}
}

// TestRollCall has half of the members die: the others go on when it is known, and not before.
func TestRollCall(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		size, dead int
		roll       func(ids []string) []string
		goesOn     bool
		reason     string
	}{
		{2, 1, func(ids []string) []string { return ids[1:] }, true, "of two, rank 0 is dead"},
		{4, 3, func(ids []string) []string { return ids[3:] }, true, "one of four lives"},
		{4, 2, func(ids []string) []string { return ids }, false, "the dead are not known to be"},
		{4, 2, func(ids []string) []string { return ids[1:] }, false, "one of the dead is not known to be"},
		{4, 2, func(ids []string) []string { return append(ids[2:], ids[3]) }, false, "there are two at a host, and one answers"},
		{4, 2, func(ids []string) []string { return append(ids[2:], "stranger") }, false, "somebody does not answer who may have another view"},
		{4, 2, func(ids []string) []string { return nil }, false, "it is the roll of another job"},
	} {
		s := simulate(t, 22)
		ids := group(t, s, c.size)
		for _, id := range ids[:c.dead] {
			delete(s.nodes, id)
		}
		left := ids[c.dead:]
		went := s.run(20*time.Second, func() bool {
			s.opinion()
			for _, id := range left {
				if s.nodes[id].Blocked() {
					s.nodes[id].RollCall(s.nodes[id].View(), c.roll(slices.Clone(ids)), s.now)
				}
			}
			return s.agreed(slices.Clone(left)...)
		})
		if went != c.goesOn {
			t.Errorf("%s: they go on: %v, want %v\n%s", c.reason, went, c.goesOn, s.describe())
		}
	}
}

// TestRollCallAsksNewcomers has a member that is cut off while all others of its view die, who have gone on with
// newcomers: those train, so it must not.
func TestRollCallAsksNewcomers(t *testing.T) {
	t.Parallel()
	s := simulate(t, 23)
	ids := group(t, s, 3)
	s.cut[ids[2]] = 1
	together := []string{ids[0], ids[1], s.start("x0"), s.start("x1"), s.start("x2")}
	s.mustAgree(10*time.Second, "those that are not cut off", slices.Clone(together)...)
	delete(s.nodes, ids[0])
	delete(s.nodes, ids[1])
	s.mustAgree(10*time.Second, "the newcomers", slices.Clone(together[2:])...)
	s.roll = true
	s.run(30*time.Second, func() bool { s.opinion(); return false })
	if view := s.nodes[ids[2]].View(); len(view.Members) != 3 {
		t.Errorf("the one that is cut off made view %v", view)
	}
	clear(s.cut)
	s.mustAgree(20*time.Second, "whole again", s.ids()...)
}

// TestRollCallOfAnEarlierView has an answer come late: newcomers, of whom it does not know, train by then.
func TestRollCallOfAnEarlierView(t *testing.T) {
	t.Parallel()
	s := simulate(t, 24)
	ids := group(t, s, 3)
	earlier := s.nodes[ids[1]].View()
	delete(s.nodes, ids[0])
	roll := s.ids()
	left := slices.Clone(ids[1:])
	s.mustAgree(10*time.Second, "one is dead", slices.Clone(left)...)
	newcomers := []string{s.start("x0"), s.start("x1"), s.start("x2")}
	s.mustAgree(10*time.Second, "newcomers", append(slices.Clone(left), newcomers...)...)
	for _, id := range left {
		s.cut[id] = 1
	}
	s.run(20*time.Second, func() bool {
		s.opinion()
		for _, id := range left {
			s.nodes[id].RollCall(earlier, roll, s.now)
		}
		return false
	})
	if view := s.nodes[left[0]].View(); len(view.Members) != 5 {
		t.Errorf("those that are cut off made view %v", view)
	}
}

// TestPartition has a minority that learns, when the network is whole again, that the others went on.
func TestPartition(t *testing.T) {
	t.Parallel()
	s := simulate(t, 5)
	ids := group(t, s, 5)
	s.cut[ids[0]], s.cut[ids[1]] = 1, 1
	s.mustAgree(10*time.Second, "majority", ids[2:]...)
	if got := s.nodes[ids[0]].View(); len(got.Members) != 5 {
		t.Errorf("the minority made view %v", got)
	}
	clear(s.cut)
	s.mustAgree(15*time.Second, "whole again", ids...)
}

// TestStuck has a member whose gossip still answers while nothing else of it does.
func TestStuck(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		s := simulate(t, seed)
		ids := group(t, s, 3)
		stuck := s.nodes[ids[0]]
		stuck.paused = true
		s.nodes[ids[2]].Renew(s.nodes[ids[2]].View(), s.now)
		if !s.run(5*time.Second, func() bool { return s.agreed(ids[1], ids[2]) }) {
			t.Fatalf("seed %d: the others do not go on\n%s", seed, s.describe())
		}
		if diff := cmp.Diff([]string{ids[0]}, s.nodes[ids[1]].View().Lost); diff != "" {
			t.Error(diff)
		}
		number := s.nodes[ids[1]].View().Number
		s.run(20*time.Second, nil)
		if now := s.nodes[ids[1]].View().Number; now != number {
			t.Errorf("seed %d: views went from %d to %d although nothing changed", seed, number, now)
		}
		stuck.paused = false
		if !s.run(10*time.Second, func() bool { return s.agreed(ids...) }) {
			t.Fatalf("seed %d: it is not taken back\n%s", seed, s.describe())
		}
	}
}

// TestBroken has members who are all well, but whose group is not.
func TestBroken(t *testing.T) {
	t.Parallel()
	s := simulate(t, 7)
	ids := group(t, s, 4)
	view := s.nodes[ids[0]].View()
	for _, id := range ids {
		s.nodes[id].Renew(view, s.now) // each of them notices
	}
	if !s.run(5*time.Second, func() bool { return s.nodes[ids[3]].View().Number > view.Number && s.agreed(ids...) }) {
		t.Fatalf("no new view\n%s", s.describe())
	}
	s.nodes[ids[2]].Renew(view, s.now) // a late report
	s.run(5*time.Second, nil)
	if got := s.nodes[ids[0]].View(); got.Number != view.Number+1 {
		t.Errorf("view %d followed view %d: a late report must change nothing", got.Number, view.Number)
	}
	if diff := cmp.Diff(view.IDs(), s.nodes[ids[0]].View().IDs()); diff != "" {
		t.Errorf("ranks changed: %s", diff)
	}
}

// TestLeave has members take leave at once, so that few of a view are left: no quorum is missing.
func TestLeave(t *testing.T) {
	t.Parallel()
	for leaving := 1; leaving <= 4; leaving++ {
		s := simulate(t, uint64(8+leaving))
		ids := group(t, s, 4)
		for _, id := range ids[:leaving] {
			s.nodes[id].Leave(s.now)
		}
		gone := func() bool {
			for _, id := range ids[:leaving] {
				if s.nodes[id].inView() {
					return false
				}
			}
			return leaving == 4 || s.agreed(ids[leaving:]...)
		}
		if !s.run(5*time.Second, gone) {
			t.Fatalf("%d of 4 cannot leave\n%s", leaving, s.describe())
		}
		view := s.nodes[ids[3]].View()
		if diff := cmp.Diff(ids[:leaving], view.Left); diff != "" {
			t.Errorf("%d left: %s", leaving, diff)
		}
		if view.Lost != nil {
			t.Errorf("%v are said to be lost, and have left", view.Lost)
		}
	}
}

func TestLimit(t *testing.T) {
	t.Parallel()
	s := simulate(t, 20)
	s.limit = 2
	a, b, c := s.start("w0"), s.start("w1"), s.start("w2")
	s.run(10*time.Second, func() bool { s.opinion(); return s.agreed(a, b) })
	view := s.nodes[a].View()
	s.run(10*time.Second, func() bool { s.opinion(); return false })
	if now := s.nodes[a].View(); !now.Same(view) || !s.nodes[c].View().Same(view) {
		t.Errorf("view %d became %d although it is full; the one that stands by has %d", view.Number, now.Number, s.nodes[c].View().Number)
	}
	delete(s.nodes, b)
	s.mustAgree(5*time.Second, "the one that stood by comes in", a, c)
}

// TestHistoriesMeet has a first member that starts again alone, founds anew, and then meets the others.
func TestHistoriesMeet(t *testing.T) {
	t.Parallel()
	s := simulate(t, 21)
	ids := group(t, s, 3)
	delete(s.nodes, ids[0])
	again := elastic.Member{ID: "w0.again", Name: "w0"} // two trainings, for a while
	s.force = time.Hour
	config := DefaultConfig(again)
	config.Found = true
	s.nodes[again.ID], s.cut[again.ID] = &simulated{Node: New(config, s.now)}, 1
	s.mustAgree(20*time.Second, "the others", ids[1], ids[2])
	s.mustAgree(20*time.Second, "alone", again.ID)
	clear(s.cut)
	s.mustAgree(20*time.Second, "met", again.ID, ids[1], ids[2])
	if history := s.nodes[again.ID].View().History; history != ids[0] {
		t.Errorf("history %s won, want the one that had come further", history)
	}
}

// TestAgreement has histories of everything that may happen. At any time all who have view n have the same
// one (the simulation looks at each step); when the network is whole again, all who run are one view, unless a
// quorum of the last view is dead and nobody hears of it. Never can two views train.
func TestAgreement(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := simulate(t, rapid.Uint64().Draw(t, "seed"))
		s.roll = rapid.Bool().Draw(t, "roll calls")
		for i := range rapid.IntRange(1, 6).Draw(t, "size") {
			s.start(fmt.Sprint("w", i))
		}
		s.loss = rapid.SampledFrom([]float64{0, 0.1, 0.4}).Draw(t, "loss")
		s.delay = rapid.SampledFrom([]time.Duration{time.Millisecond, 100 * time.Millisecond, 2 * time.Second}).Draw(t, "delay")
		wrong := rapid.Bool().Draw(t, "gossip is wrong")
		pick := func(label string) *simulated { return s.nodes[rapid.SampledFrom(s.ids()).Draw(t, label)] }
		for range rapid.IntRange(0, 15).Draw(t, "events") {
			switch rapid.IntRange(0, 6).Draw(t, "event") {
			case 0:
				s.start(fmt.Sprint("w", 1+s.random.IntN(9)))
			case 1:
				if len(s.nodes) > 1 {
					delete(s.nodes, pick("killed").config.Self.ID)
				}
			case 2:
				pick("paused").paused = true
			case 3:
				pick("resumed").paused = false
			case 4:
				for _, id := range s.ids() {
					s.cut[id] = s.random.IntN(2)
				}
			case 5:
				clear(s.cut)
			case 6:
				n := pick("reporter")
				n.Renew(n.View(), s.now)
			}
			if wrong {
				s.guess()
			} else {
				s.opinion()
			}
			s.run(time.Duration(rapid.IntRange(1, 4000).Draw(t, "for ms"))*time.Millisecond, nil)
		}
		heal(t, s)
	})
}

// heal makes the network whole and holds the nodes to an agreement.
func heal(t *rapid.T, s *simulation) {
	s.loss, s.delay = 0, 5*time.Millisecond
	clear(s.cut)
	for _, n := range s.nodes {
		n.paused = false
	}
	latest := elastic.View{}
	for _, n := range s.nodes {
		if latest.Precedes(n.View()) {
			latest = n.View()
		}
	}
	done := func() bool { s.opinion(); return s.agreed(s.ids()...) }
	if s.run(30*time.Second, done) {
		return
	}
	for _, n := range s.nodes {
		if latest.Precedes(n.View()) {
			latest = n.View()
		}
	}
	survivor := slices.ContainsFunc(latest.IDs(), func(id string) bool { return s.nodes[id] != nil })
	if s.roll && survivor || latest.Quorum(func(id string) bool { return s.nodes[id] != nil }) {
		t.Fatalf("no agreement although the network is whole and a quorum lives\n%s", s.describe())
	}
}
