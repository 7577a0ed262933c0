// SPDX-License-Identifier: Apache-2.0

package elastic

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func members(names string) []Member {
	var out []Member
	for _, name := range strings.Fields(names) {
		out = append(out, Member{ID: name + ".1", Name: name})
	}
	return out
}

func names(list []Member) string {
	var out []string
	for _, m := range list {
		out = append(out, m.Name)
	}
	return strings.Join(out, " ")
}

func TestAssign(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		before, present, want string
		limit                 int
		reason                string
	}{
		{"", "w-10 w-2 w-0", "w-0 w-2 w-10", 0, "at the start ranks follow names, by number"},
		{"a b c d", "a b c d e", "a b c d e", 0, "a newcomer comes last"},
		{"a b c d", "a c d", "a d c", 0, "the gap goes to the one whose rank is gone; c keeps its own"},
		{"a b c", "a c n", "a n c", 0, "a newcomer takes the gap, and nobody moves"},
		{"a b c", "b c n", "c b n", 0, "rank 0 is a survivor, though a newcomer would fill the gap"},
		{"a b c", "b c", "c b", 0, "the survivor that must move anyway takes rank 0"},
		{"a b", "m n", "m n", 0, "nobody survived"},
		{"a b c", "a b c n", "a b c", 3, "survivors go before newcomers where there is a limit"},
		{"a b c", "c n o", "c n", 2, "a survivor is taken, whatever its rank was"},
	} {
		if got := names(Assign(members(c.before), members(c.present), c.limit)); got != c.want {
			t.Errorf("%s: Assign(%q, %q, %d) = %q, want %q", c.reason, c.before, c.present, c.limit, got, c.want)
		}
	}
}

// TestAddressesDoNotCollide has the addresses whose digits ftlib took for one member.
func TestAddressesDoNotCollide(t *testing.T) {
	t.Parallel()
	a := Member{ID: "1.23.4.5:7946", Name: "w", Address: "1.23.4.5:9"}
	b := Member{ID: "12.3.4.5:7946", Name: "w", Address: "12.3.4.5:9"}
	if got := Assign(nil, []Member{b, a}, 0); len(got) != 2 || got[0].ID == got[1].ID {
		t.Errorf("two members got the ranks %v", got)
	}
}

func TestAssignProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var previous, present []Member
		for i := range rapid.IntRange(0, 12).Draw(t, "pool") {
			m := Member{ID: fmt.Sprint("m", i), Name: fmt.Sprint("m", i)}
			where := rapid.IntRange(0, 3).Draw(t, "where")
			if where != 0 {
				previous = append(previous, m)
			}
			if where != 1 {
				present = append(present, m)
			}
		}
		previous = rapid.Permutation(previous).Draw(t, "previous")
		limit := rapid.IntRange(0, 12).Draw(t, "limit")
		got := View{Number: 1, Members: Assign(previous, present, limit)}
		if len(got.Members) > 0 {
			if err := got.Validate(); err != nil {
				t.Fatal(err)
			}
		}
		want := len(present)
		if limit > 0 {
			want = min(want, limit)
		}
		if len(got.Members) != want {
			t.Fatalf("%d members have a rank, want %d", len(got.Members), want)
		}
		survived, moved := 0, 0
		for rank, m := range previous {
			now := got.Rank(m.ID)
			if now < 0 {
				continue
			}
			survived++
			if rank < want && now != rank {
				moved++
			}
		}
		if moved > 1 {
			t.Fatalf("%d survivors moved whose rank exists still: %q to %q", moved, names(previous), names(got.Members))
		}
		old := View{Members: previous}
		if survived > 0 && old.Rank(got.Members[0].ID) < 0 {
			t.Fatalf("rank 0 is a newcomer although %d survived", survived)
		}
	})
}

func TestQuorumsIntersect(t *testing.T) {
	t.Parallel()
	for size := 1; size <= 8; size++ {
		view := View{Number: 1}
		for i := range size {
			view.Members = append(view.Members, Member{ID: fmt.Sprint(i)})
		}
		in := func(set int) func(string) bool {
			return func(id string) bool { return set&(1<<view.Rank(id)) != 0 }
		}
		for a := range 1 << size {
			for b := range 1 << size {
				if a&b == 0 && view.Quorum(in(a)) && view.Quorum(in(b)) {
					t.Fatalf("of %d members, %b and %b are both quorums", size, a, b)
				}
			}
		}
	}
	two := View{Number: 1, Members: members("a b")}
	if !two.Quorum(func(id string) bool { return id == "a.1" }) || two.Quorum(func(id string) bool { return id == "b.1" }) {
		t.Error("of two, rank 0 alone must be a quorum and rank 1 must not")
	}
}

func TestViewValidate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		view   View
		want   string
		reason string
	}{
		{View{Number: 1, Members: members("a b")}, "", "whole"},
		{View{}, "", "no view yet"},
		{View{Number: 3}, "", "everyone has left"},
		{View{Members: members("a")}, "cannot use view 0: it has 1 members", "no view has no members"},
		{View{Number: 1, Members: members("a a")}, `cannot use view 1: "a.1" is in it twice`, "a member has one rank"},
		{View{Number: 1, Members: []Member{{Name: "x"}}}, "cannot use view 1: rank 0: a member without id", "a member has an id"},
		{View{Number: 1, Members: []Member{{ID: "x", Slots: -1}}}, `cannot use view 1: rank 0: member "x" has -1 slots`, "slots count processes"},
		{View{Number: 1, Members: make([]Member, maxMembers+1)}, "cannot use view 1: more than 4096 members", "hostile size"},
	} {
		got := ""
		if err := c.view.Validate(); err != nil {
			got = err.Error()
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.reason, diff)
		}
	}
}
