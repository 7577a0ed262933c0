// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"diwan.dev/diwan/optimize/internal/halving"
)

// epochs returns a space of one parameter and a resource.
func epochs(t *testing.T, resource Parameter) *Space {
	t.Helper()
	space, err := NewSpace(Double("x", 0, 1), resource)
	if err != nil {
		t.Fatal(err)
	}
	return space
}

func TestLadder(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason   string
		resource Parameter
		config   FidelityConfig
		want     []string
	}{
		"Paper":    {"The paper's.", Int("r", 1, 81), FidelityConfig{Eta: 3}, []string{"1", "3", "9", "27", "81"}},
		"Katib":    {"Rungs are counted down from the most.", Int("r", 1, 100), FidelityConfig{Eta: 3}, []string{"1", "4", "11", "33", "100"}},
		"Most":     {"The most may be less than the parameter's.", Int("r", 1, 100), FidelityConfig{Eta: 2, Max: 8}, []string{"1", "2", "4", "8"}},
		"Least":    {"And the least more.", Int("r", 1, 100), FidelityConfig{Eta: 2, Max: 8, Min: 3}, []string{"4", "8"}},
		"Range":    {"The parameter bounds it.", Int("r", 10, 81), FidelityConfig{Eta: 3}, []string{"27", "81"}},
		"Step":     {"Amounts are the parameter's values.", Int("r", 5, 80).By(5), FidelityConfig{Eta: 2}, []string{"5", "10", "20", "40", "80"}},
		"Coarse":   {"And each is a rung of its own.", Int("r", 25, 100).By(25), FidelityConfig{Eta: 1.5}, []string{"25", "50", "75", "100"}},
		"Discrete": {"A list need not be sorted.", Discrete("r", 100, 1, 30, 10, 3), FidelityConfig{Eta: 3}, []string{"1", "3", "10", "30", "100"}},
		"Part":     {"A part of the data.", Double("r", 0, 1), FidelityConfig{Eta: 2}, []string{"0.0625", "0.125", "0.25", "0.5", "1"}},
		"Single":   {"One rung is a random search.", Int("r", 9, 9), FidelityConfig{Eta: 3}, []string{"9"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			space := epochs(t, tc.resource)
			tc.config.Resource = "r"
			f, err := newFidelity(space, 1, tc.config)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, at := range f.ladder {
				got = append(got, space.axes[1].format(at))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s ladder: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// ladderSearch is a search on whose trials a test decides.
type ladderSearch struct {
	t       testing.TB
	history *History
	sampler Sampler
}

func (s *ladderSearch) ask() int {
	s.t.Helper()
	p, err := s.sampler.Sample(s.t.Context(), s.history)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.history.Add(p)
}

func (s *ladderSearch) tell(index int, r Result) {
	s.t.Helper()
	if err := s.history.Tell(index, r); err != nil {
		s.t.Fatal(err)
	}
}

// label returns a label of a trial, "" for none.
func (s *ladderSearch) label(index int, name string) string {
	return s.history.Trial(index).Point.Labels()[name]
}

// TestASHAPromotes follows Algorithm 2 of the ASHA paper by hand.
func TestASHAPromotes(t *testing.T) {
	t.Parallel()
	space := epochs(t, Int("r", 1, 4))
	sampler, err := NewASHA(space, 1, ASHAConfig{FidelityConfig{Resource: "r", Eta: 2}, 1})
	if err != nil {
		t.Fatal(err)
	}
	s := &ladderSearch{t, NewHistory(space), sampler}
	failed := Result{State: Failed}
	steps := []struct {
		reason string
		rung   string
		parent string
		result Result // of the trial, told before the next step
	}{
		{"Nothing is known.", "0", "", Values(5)},
		{"One is none of the best half of one.", "0", "", Values(3)},
		{"The better of two is promoted.", "1", "1", Values(9)},
		{"The other of two is not.", "0", "", Values(4)},
		{"Nor is the second of three.", "0", "", Values(2)},
		{"Of four the best two are: that of 2, as that of 3 was.", "1", "4", Values(1)},
		{"Of two on the next rung the better is promoted, before any below.", "2", "5", Values(7)},
		{"There is no rung above.", "0", "", failed},
		{"A failure is worse than all: six with it and this make three places, one is left for 4.", "0", "", failed},
		{"It is taken.", "1", "3", failed},
		{"Three on rung 1, one of them failed: its best is promoted already.", "0", "", Values(6)},
		{"Seven make three places, and all are taken.", "0", "", Values(5)},
		{"Eight make four, and of equals the earlier is first.", "1", "0", Values(3)},
		{"Four on rung 1 make two: 1 was promoted, then comes 3.", "2", "12", Values(1)},
	}
	for i, step := range steps {
		index := s.ask()
		if rung, parent := s.label(index, LabelRung), s.label(index, LabelParent); index != i || rung != step.rung || parent != step.parent {
			t.Fatalf("%s Trial %d is on rung %s with parent %q: want rung %s, parent %q", step.reason, index, rung, parent, step.rung, step.parent)
		}
		if step.parent != "" {
			parent, _ := strconv.Atoi(step.parent)
			if got, want := s.history.Trial(index).Point.Float("x"), s.history.Trial(parent).Point.Float("x"); got != want {
				t.Fatalf("trial %d has x = %v, its parent %v", index, got, want)
			}
		}
		if got, want := s.history.Trial(index).Point.Int("r"), 1<<s.mustInt(step.rung); got != want {
			t.Fatalf("trial %d on rung %s has %d of the resource: want %d", index, step.rung, got, want)
		}
		s.tell(index, step.result)
	}
}

func (s *ladderSearch) mustInt(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

// TestHyperbandRound checks that a round of the paper's brackets comes out as
// in its table, whether trials run one after the other or many at once.
func TestHyperbandRound(t *testing.T) {
	t.Parallel()
	for _, parallel := range []int{1, 7, 100, 300} {
		space := epochs(t, Int("r", 1, 81))
		sampler, err := NewHyperband(space, 1, HyperbandConfig{FidelityConfig{Resource: "r", Eta: 3}})
		if err != nil {
			t.Fatal(err)
		}
		s := &ladderSearch{t, NewHistory(space), sampler}
		var pending []int
		finish := func(i int) { s.tell(i, Values(math.Abs(s.history.Trial(i).Point.Float("x")-0.3))) }
		for turn := range 1000 {
			for len(pending) < parallel {
				pending = append(pending, s.ask())
			}
			k := turn * 7919 % len(pending) // not in the order of the suggestions
			finish(pending[k])
			pending = slices.Delete(pending, k, k+1)
		}
		for _, i := range pending {
			finish(i)
		}
		for range 200 { // which were waited for
			finish(s.ask())
		}
		got := make([][]int, 5)
		for bracket := range got {
			got[bracket] = make([]int, 5)
			f := sampler.(*hyperband)
			for rung := range 5 {
				got[bracket][rung] = f.read(s.history).board.Started(bracket, rung)
			}
			checkBest(t, f, s.history, bracket)
		}
		want := [][]int{{81, 27, 9, 3, 1}, {0, 34, 11, 3, 1}, {0, 0, 15, 5, 1}, {0, 0, 0, 8, 2}, {0, 0, 0, 0, 5}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("trials with %d at once: -want, +got:\n%s", parallel, diff)
		}
	}
}

// checkBest checks that exactly the best of each rung of a finished bracket
// came to the next.
func checkBest(t *testing.T, f *hyperband, h *History, bracket int) {
	t.Helper()
	b := f.read(h).board
	for rung := range 4 {
		finished := b.Finished(bracket, rung)
		for place, i := range finished {
			if want := place < b.Started(bracket, rung+1); b.Run(i).Promoted != want {
				t.Errorf("bracket %d, rung %d: the trial in place %d of %d is promoted: %v, want %v", bracket, rung, place, len(finished), !want, want)
			}
		}
	}
}

// TestPromotions draws searches, and checks at each suggestion that it is a new
// configuration or one that has earned it.
func TestPromotions(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(*Space) (Sampler, error){
		"asha": func(s *Space) (Sampler, error) {
			return NewASHA(s, 1, ASHAConfig{FidelityConfig{Resource: "r", Eta: 3}, 1})
		},
		"brackets": func(s *Space) (Sampler, error) {
			return NewASHA(s, 1, ASHAConfig{FidelityConfig{Resource: "r", Eta: 2}, 3})
		},
		"hyperband": func(s *Space) (Sampler, error) {
			return NewHyperband(s, 1, HyperbandConfig{FidelityConfig{Resource: "r", Eta: 3}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) {
				space := epochs(t, Int("r", 1, 27))
				sampler, err := make(space)
				if err != nil {
					rt.Fatal(err)
				}
				checkPromotions(t, rt, &ladderSearch{t, NewHistory(space, rapid.SampledFrom([]Direction{Minimize, Maximize}).Draw(rt, "direction")), sampler})
			})
		})
	}
}

func checkPromotions(t *testing.T, rt *rapid.T, s *ladderSearch) {
	type config struct{ bracket, x string }
	rungs := map[config]int{} // the highest so far
	promoted := map[string]bool{}
	for range rapid.IntRange(1, 150).Draw(rt, "trials") {
		if rapid.IntRange(0, 19).Draw(rt, "lost") == 0 {
			s.history.AddLost()
			continue
		}
		i := s.ask()
		p := s.history.Trial(i).Point
		c := config{s.label(i, LabelBracket), p.Text("x")}
		rung, err := strconv.Atoi(s.label(i, LabelRung))
		if err != nil {
			rt.Fatalf("trial %d has labels %v", i, p.Labels())
		}
		parent, child := p.Labels()[LabelParent]
		switch {
		case child && promoted[parent]:
			rt.Fatalf("trial %s is promoted twice", parent)
		case child && rungs[c] != rung-1:
			rt.Fatalf("trial %d is on rung %d, its configuration was on %d", i, rung, rungs[c])
		case child:
			promoted[parent] = true
			checkEarned(rt, s, parent)
		}
		rungs[c] = rung
		if k := rapid.IntRange(0, i).Draw(rt, "told"); s.history.Trial(k).State == Pending {
			s.tell(k, drawResult(rt))
		}
	}
}

// checkEarned checks that a trial that was promoted has a value that is at
// least as good as that of all but the best third or half, or of so many as are
// to come to the next rung.
func checkEarned(rt *rapid.T, s *ladderSearch, parent string) {
	h, k := s.history, s.mustInt(parent)
	if !h.Trial(k).Complete() {
		rt.Fatalf("trial %d is promoted, and is %+v", k, h.Trial(k).Result)
	}
	better, ended := 0, 0
	for i := range h.Len() {
		other := h.Trial(i)
		if other.Point.Labels()[LabelBracket] != s.label(k, LabelBracket) || other.Point.Labels()[LabelRung] != s.label(k, LabelRung) || other.State == Lost || other.State == Pending {
			continue
		}
		ended++
		if other.Complete() && h.Direction().Better(other.Value(), h.Trial(k).Value()) {
			better++
		}
	}
	limit := float64(ended) / 2
	if f, ok := s.sampler.(*asha); ok {
		limit = float64(ended) / f.Eta
	} else if f, ok := s.sampler.(*hyperband); ok {
		limit = float64(halving.Plan(len(f.ladder), s.mustInt(s.label(k, LabelBracket)), f.Eta)[s.mustInt(s.label(k, LabelRung))+1])
	}
	if float64(better+1) > limit+1e-9 {
		rt.Fatalf("trial %d is promoted: %d of %d are better, and %v may be", k, better, ended, limit)
	}
}

func drawResult(rt *rapid.T) Result {
	switch rapid.IntRange(0, 9).Draw(rt, "result") {
	case 0:
		return Result{State: Failed}
	case 1:
		return Result{State: Stopped, Values: []float64{-99}, Step: 1}
	}
	return Values(rapid.Float64Range(-1, 1).Draw(rt, "value"))
}

// TestView checks what the inner sampler sees.
func TestView(t *testing.T) {
	t.Parallel()
	space := epochs(t, Int("r", 1, 4))
	c := FidelityConfig{Resource: "r", Eta: 2, MinPoints: 2}
	f, err := newFidelity(space, 1, c)
	if err != nil {
		t.Fatal(err)
	}
	h := NewHistory(space, Maximize)
	add := func(x float64, rung, parent int, r Result) {
		labels := map[string]string{LabelBracket: "0", LabelRung: strconv.Itoa(rung)}
		if parent >= 0 {
			labels[LabelParent] = strconv.Itoa(parent)
		}
		i := h.Add(space.Quantile([]float64{x, []float64{0, 0.3, 0.99}[rung]}).WithLabels(labels))
		if r.State != Pending {
			if err := h.Tell(i, r); err != nil {
				t.Fatal(err)
			}
		}
	}
	add(0.1, 0, -1, Values(1)) // 0: is overtaken
	add(0.2, 0, -1, Values(2)) // 1: comes to rung 1
	h.AddLost()                // 2
	add(0.3, 0, -1, Values(3)) // 3: comes to rung 2
	add(0.2, 1, 1, Values(12)) // 4
	add(0.3, 1, 3, Values(13)) // 5
	add(0.3, 2, 5, Values(23)) // 6
	add(0.4, 0, -1, Result{State: Failed})
	add(0.5, 0, -1, Result{}) // 8: runs
	got, values := f.view(f.read(h))
	if values != 2 {
		t.Errorf("the view has %d values, want 2", values)
	}
	var lines []string
	for i := range got.Len() {
		trial := got.Trial(i)
		lines = append(lines, fmt.Sprintf("%v %d %v step %d", trial.Point, trial.State, trial.Values, trial.Step))
	}
	want := []string{
		fmt.Sprintf("x=0.1 %d [] step 0", Pending), // it has no value on rung 1
		fmt.Sprintf("x=0.2 %d [12] step 0", Complete),
		fmt.Sprintf(" %d [] step 0", Lost),
		fmt.Sprintf("x=0.3 %d [13] step 0", Complete),
		fmt.Sprintf("x=0.4 %d [] step 0", Failed),
		fmt.Sprintf("x=0.5 %d [] step 0", Pending),
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("view: -want, +got:\n%s", diff)
	}
	if best, ok := got.Best(); !ok || best.Index != 3 || got.Direction() != Maximize {
		t.Errorf("best of the view is %+v", best)
	}
}
