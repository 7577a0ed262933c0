// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestWorkModel holds the model to a simple count of what it was told.
func TestWorkModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		maximize := rapid.Bool().Draw(t, "maximize")
		w := NewWork(ID{Kind: "Experiment"}, Trials, Objective{Metric: "m", Maximize: maximize}, true, at(0))
		w.SetStatus(Status{Planned: 50, Parallel: 3}, at(0))
		told := map[string]Trial{}
		bests := 0
		for i := range rapid.IntRange(0, 60).Draw(t, "facts") {
			trial := Trial{
				Name:  fmt.Sprint(rapid.IntRange(0, 20).Draw(t, "name")),
				State: State(rapid.IntRange(int(Pending), int(Killed)).Draw(t, "state")),
				Ended: at(float64(rapid.IntRange(0, 9).Draw(t, "ended"))),
			}
			if trial.State == Succeeded {
				trial.Value = rapid.SampledFrom([]string{"", "1", "-3e5", "NaN", "inf", "unavailable", "0.25"}).Draw(t, "value")
			}
			if rapid.IntRange(0, 9).Draw(t, "remove") == 0 {
				w.RemoveTrial(trial.Name)
				delete(told, trial.Name)
				continue
			}
			for _, e := range w.SetTrial(trial, false, at(float64(i))) {
				if e.Best {
					bests++
				}
			}
			if !told[trial.Name].State.Ended() {
				told[trial.Name] = trial
			}
		}
		v := w.View(at(100))
		var want Counts
		var values []float64
		for _, trial := range told {
			*want.of(trial.State)++
			if value, ok := trial.number(); ok {
				values = append(values, value)
			}
		}
		if diff := cmp.Diff(want, v.Counts); diff != "" {
			t.Fatalf("counts (-want +got)\n%s", diff)
		}
		if len(v.History) != len(values) {
			t.Fatalf("history has %d values, want %d", len(v.History), len(values))
		}
		if !slices.IsSortedFunc(v.History, func(a, b float64) int {
			if maximize {
				a, b = b, a
			}
			return -compare(a, b)
		}) {
			t.Fatalf("history gets worse: %v", v.History)
		}
		if len(values) > 0 {
			best := slices.Min(values)
			if maximize {
				best = slices.Max(values)
			}
			if got, _ := v.Best.number(); got != best {
				t.Fatalf("best is %v, want %v", got, best)
			}
		}
		_ = Block([]View{v}, Style{Width: 80})
		_ = Result(v, Extra{}, Style{})
	})
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// TestSettled has a search end before all of its trials are known to have: its result waits for them.
func TestSettled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind   string
		status Status
		reason string
	}{
		{"Experiment", Status{Planned: 4, Counts: Counts{Succeeded: 2}}, "it says how many trials have ended"},
		{"OptimizationJob", Status{Planned: 2, Uncounted: true}, "it only says how many there are to be"},
	} {
		w := NewWork(ID{Kind: c.kind}, Trials, Objective{}, true, at(0))
		c.status.Condition = ConditionSucceeded
		w.SetStatus(c.status, at(1))
		for known := range 3 {
			if got, want := w.Settled(), known == 2; got != want {
				t.Errorf("a search of kind %s that knows of %d of 2 trials is settled: %v; %s", c.kind, known, got, c.reason)
			}
			w.SetTrial(Trial{Name: fmt.Sprint(known), State: Succeeded}, false, at(2))
		}
	}
}

// TestFit holds every line to its width, and to losing no color's end.
func TestFit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		style := Style{Width: rapid.IntRange(1, 60).Draw(t, "width"), Color: rapid.Bool().Draw(t, "color")}
		text := style.paint(red, Clean(rapid.String().Draw(t, "red"))) + Clean(rapid.String().Draw(t, "plain"))
		got := style.fit(text)
		if n := columns(got); n > style.Width {
			t.Fatalf("%q takes %d columns, want at most %d", got, n, style.Width)
		}
		if strings.Count(got, "\x1b[") != strings.Count(text, "\x1b[") {
			t.Fatalf("%q lost a colour of %q", got, text)
		}
	})
}

func TestChart(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		values []float64
		total  int
		want   []string
	}{
		"Rising":  {"A rise is drawn from the bottom left to the top right", []float64{0, 1, 2, 3}, 4, []string{" ⣸", "⣰⠃"}},
		"Flat":    {"Equal values lie in the middle", []float64{5, 5}, 2, []string{"⣀⣀", ""}},
		"Growing": {"Values yet to come leave room at the right", []float64{0, 1}, 4, []string{"⢸", "⣸"}},
		"Huge":    {"The difference of extremes does not overflow", []float64{-1.7e308, 1.7e308}, 2, []string{" ⡏", "⣀⡇"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, chart(tc.values, tc.total, 2, 2)); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64(), 1, 50).Draw(t, "values")
		for _, line := range chart(values, rapid.IntRange(0, 100).Draw(t, "total"), 7, 3) {
			if columns(line) > 7 {
				t.Fatalf("%q is wider than 7", line)
			}
		}
	})
}

func TestRemaining(t *testing.T) {
	t.Parallel()
	p := pace{times: []time.Time{at(0)}}
	if _, ok := p.remaining(10, 2, at(1)); ok {
		t.Error("an estimate without any end")
	}
	for i := range 100 {
		p.add(at(float64(i+1)/2), 2)
	}
	if got, ok := p.remaining(10, 2, at(50)); !ok || got != 5*time.Second {
		t.Errorf("ten trials at two a second take %v, want 5s", got)
	}
	if len(p.times) != 21 {
		t.Errorf("%d times are remembered, want 21", len(p.times))
	}
	if got, _ := p.remaining(10, 2, at(500)); got < 10*time.Second {
		t.Errorf("the estimate is %v after a long silence, want more", got)
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration][3]string{
		0:                         {"0:00", "1s", "0.0s"},
		7200 * time.Millisecond:   {"0:07", "8s", "7.2s"},
		59960 * time.Millisecond:  {"1:00", "60s", "1m 00s"},
		83 * time.Second:          {"1:23", "85s", "1m 23s"},
		754 * time.Second:         {"12:34", "13 min", "12m 34s"},
		3*time.Hour + time.Second: {"3:00:01", "3.0 h", "3h 00m"},
	} {
		if got := [3]string{clock(d), roughly(d), took(d)}; got != want {
			t.Errorf("%v is written as %v, want %v", d, got, want)
		}
	}
	for in, want := range map[string]string{
		"0.97493036211": "0.9749", "123456789": "123456789", "1234567890123": "1.235e+12", "12": "12", "relu": "relu", "1e-9": "1e-9",
		"a\x1b[2Jb\nc": "a�[2Jb c",
	} {
		if got := short(in); got != want {
			t.Errorf("%q is shortened to %q, want %q", in, got, want)
		}
	}
	if got := strconv.Quote(Clean("é\xff\u202e")); got != `"é��"` {
		t.Errorf("cleaned to %s", got)
	}
}

func TestScreen(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := NewScreen(&out)
	s.Draw([]string{"one", "two"})
	s.Print([]string{"news"}, []string{"three"})
	s.Draw(nil)
	want := "one\x1b[K\ntwo\x1b[K\n\x1b[J" + "\x1b[2A\rnews\x1b[K\nthree\x1b[K\n\x1b[J" + "\x1b[1A\r\x1b[J"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("the terminal gets (-want +got)\n%s", diff)
	}
}

// TestViolatingTrialIsNoBest shows a trial that violates a constraint as such,
// and neither as the best nor in the chart.
func TestViolatingTrialIsNoBest(t *testing.T) {
	t.Parallel()
	w := NewWork(ID{Kind: "Experiment"}, Trials, Objective{Metric: "m"}, true, at(0))
	line := func(trial Trial) string {
		events := w.SetTrial(trial, false, at(1))
		if len(events) != 1 {
			t.Fatalf("%d events", len(events))
		}
		return Line(events[0], Style{})
	}
	if got := line(Trial{Name: "a", State: Succeeded, Value: "1", Violates: true}); got != "trial a succeeded: m=1 (violates a constraint)" {
		t.Errorf("got %q", got)
	}
	if got := line(Trial{Name: "b", State: Succeeded, Value: "2"}); got != "trial b succeeded: m=2 (best so far)" {
		t.Errorf("got %q", got)
	}
	if v := w.View(at(2)); len(v.History) != 1 || v.History[0] != 2 {
		t.Errorf("the chart has %v, want what satisfies the constraint", v.History)
	}
}

// TestCleanedAway keeps the result of a search of which its trials are cleaned away after its end, while
// one that goes on forgets a trial that is deleted.
func TestCleanedAway(t *testing.T) {
	t.Parallel()
	w := NewWork(ID{Kind: "OptimizationJob"}, Trials, Objective{Metric: "m"}, true, at(0))
	for _, trial := range []Trial{{Name: "a", State: Succeeded, Value: "2"}, {Name: "b", State: Succeeded, Value: "1"}, {Name: "c", State: Failed}} {
		w.SetTrial(trial, false, at(1))
	}
	w.RemoveTrial("c")
	w.SetStatus(Status{Condition: ConditionSucceeded, Planned: 2, Uncounted: true}, at(2))
	w.RemoveTrial("a")
	w.RemoveTrial("b")
	if v := w.View(at(3)); v.Best == nil || v.Best.Name != "b" || v.Counts != (Counts{Succeeded: 2}) {
		t.Errorf("the best trial is %+v of %+v, want b of 2 that succeeded", v.Best, v.Counts)
	}
}
