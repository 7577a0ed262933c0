// SPDX-License-Identifier: Apache-2.0

// Package stoppingtest holds every [stopping.Rule] to what all rules have in
// common.
//
// A rule has one test that calls [Run]. It draws searches at random, with
// trials that report at uneven steps, diverge, fail and are stopped, and checks
// the rule's verdicts on them: they are the same when asked again and in the
// mirrored search, they come with a reason, and they spare what no rule may
// stop.
package stoppingtest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"diwan.dev/diwan/optimize/stopping"
)

// Subject is a rule to test.
type Subject struct {
	Rule stopping.Rule
	// Absolute is set for a rule to which the size of the values matters.
	Absolute bool
	// Alone is set for a rule that judges a trial on its own, and may
	// therefore stop the best or the only one.
	Alone bool
}

// Run holds a rule to the contract.
func Run(t *testing.T, s Subject) {
	for name, test := range map[string]func(*rapid.T, Subject){
		"Pure":     testPure,
		"Grown":    testGrown,
		"Mirrored": testMirrored,
		"Scaled":   testScaled,
		"Spared":   testSpared,
		"Limits":   testLimits,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) { test(rt, s) })
		})
	}
	t.Run("Stops", func(t *testing.T) {
		t.Parallel()
		testStops(t, s)
	})
}

// report is one value that a trial reports.
type report struct {
	step  int
	value float64
}

// trial is what one trial of a search does.
type trial struct {
	reports []report
	state   stopping.State
}

// drawSearch draws some trials, of which the last runs.
func drawSearch(rt *rapid.T, extremes bool) []trial {
	trials := make([]trial, rapid.IntRange(1, 12).Draw(rt, "trials"))
	for i := range trials {
		level, slope := rapid.Float64Range(-10, 10).Draw(rt, "level"), rapid.Float64Range(-1, 1).Draw(rt, "slope")
		step := rapid.IntRange(0, 3).Draw(rt, "first")
		for range rapid.IntRange(0, 30).Draw(rt, "reports") {
			value := level + slope*float64(step) + rapid.Float64Range(-1, 1).Draw(rt, "noise")
			if extremes && rapid.IntRange(0, 19).Draw(rt, "extreme") == 0 {
				value = rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e308, -1e308, 0}).Draw(rt, "value")
			}
			trials[i].reports = append(trials[i].reports, report{step, value})
			step += rapid.SampledFrom([]int{1, 1, 1, 2, 7}).Draw(rt, "stride")
		}
		trials[i].state = rapid.SampledFrom([]stopping.State{
			stopping.Complete, stopping.Complete, stopping.Complete, stopping.Running, stopping.Stopped, stopping.Failed,
		}).Draw(rt, "state")
	}
	trials[len(trials)-1].state = stopping.Running
	return trials
}

// curves returns the curves of a search with each value changed.
func curves(d stopping.Direction, trials []trial, change func(float64) float64) *stopping.Curves {
	c := stopping.NewCurves(d)
	for i, t := range trials {
		for _, r := range t.reports {
			c.Report(i, r.step, change(r.value))
		}
		c.End(i, t.state)
	}
	return c
}

func same(x float64) float64 { return x }

// testPure asks twice, and checks the form of the verdict.
func testPure(rt *rapid.T, s Subject) {
	trials := drawSearch(rt, true)
	for _, d := range []stopping.Direction{stopping.Minimize, stopping.Maximize} {
		c, again := curves(d, trials, same), curves(d, trials, same)
		for i, t := range trials {
			v := s.Rule.Judge(c, i)
			if second := s.Rule.Judge(c, i); second != v {
				rt.Fatalf("verdict on trial %d is %+v, and asked again %+v", i, v, second)
			}
			if rebuilt := s.Rule.Judge(again, i); rebuilt != v {
				rt.Fatalf("verdict on trial %d is %+v, and from the same reports %+v", i, v, rebuilt)
			}
			switch {
			case v.Stop != (v.Reason != ""):
				rt.Fatalf("verdict on trial %d is %+v: want a reason exactly where it stops", i, v)
			case v.Stop && !strings.ContainsAny(v.Reason, "0123456789"):
				rt.Fatalf("reason %q has no number", v.Reason)
			case v.Stop && (t.state != stopping.Running || len(t.reports) == 0):
				rt.Fatalf("trial %d is stopped, although it has %d reports and state %d", i, len(t.reports), t.state)
			}
		}
		if v := s.Rule.Judge(c, len(trials)); v.Stop {
			rt.Fatalf("a trial that there is not is stopped: %+v", v)
		}
	}
}

// testGrown has a search grow in any order, be asked meanwhile, and forget
// trials that start over; then the verdicts are those on one that is made at
// once.
func testGrown(rt *rapid.T, s Subject) {
	trials := drawSearch(rt, true)
	grown := stopping.NewCurves(stopping.Minimize)
	reported := make([]int, len(trials))
	for range rapid.IntRange(0, 80).Draw(rt, "events") {
		i := rapid.IntRange(0, len(trials)-1).Draw(rt, "trial")
		switch n := reported[i]; {
		case n < len(trials[i].reports):
			reported[i]++
			grown.Report(i, trials[i].reports[n].step, trials[i].reports[n].value)
		case rapid.IntRange(0, 3).Draw(rt, "anew") == 0:
			grown.Forget(i)
			reported[i] = 0
		default:
			grown.End(i, trials[i].state)
		}
		s.Rule.Judge(grown, rapid.IntRange(0, len(trials)-1).Draw(rt, "asked"))
	}
	for i, t := range trials {
		for _, r := range t.reports[reported[i]:] {
			grown.Report(i, r.step, r.value)
		}
		grown.End(i, t.state)
	}
	once := curves(stopping.Minimize, trials, same)
	for i := range trials {
		if v, want := s.Rule.Judge(grown, i), s.Rule.Judge(once, i); v != want {
			rt.Fatalf("verdict on trial %d is %+v, and at once %+v", i, v, want)
		}
	}
}

// testMirrored checks that maximizing is minimizing the negative.
func testMirrored(rt *rapid.T, s Subject) {
	if s.Absolute {
		return
	}
	trials := drawSearch(rt, true)
	least := curves(stopping.Minimize, trials, same)
	most := curves(stopping.Maximize, trials, func(x float64) float64 { return -x })
	for i := range trials {
		if v, mirrored := s.Rule.Judge(least, i), s.Rule.Judge(most, i); v.Stop != mirrored.Stop {
			rt.Fatalf("verdict on trial %d is %+v, and mirrored %+v", i, v, mirrored)
		}
	}
}

// testScaled checks that the unit of the values does not matter.
func testScaled(rt *rapid.T, s Subject) {
	if s.Absolute {
		return
	}
	trials := drawSearch(rt, false)
	for _, scale := range []float64{1 << 20, 1.0 / (1 << 20)} { // exact in binary
		one, other := curves(stopping.Minimize, trials, same), curves(stopping.Minimize, trials, func(x float64) float64 { return x * scale })
		for i := range trials {
			if v, scaled := s.Rule.Judge(one, i), s.Rule.Judge(other, i); v.Stop != scaled.Stop {
				rt.Fatalf("verdict on trial %d is %+v, and with values times %v %+v", i, v, scale, scaled)
			}
		}
	}
}

// testSpared checks that a trial that is better than all others at each step,
// or that has none to be compared with, continues.
func testSpared(rt *rapid.T, s Subject) {
	if s.Alone {
		return
	}
	trials := drawSearch(rt, true)
	leader := len(trials) - 1
	for i := range trials[leader].reports {
		trials[leader].reports[i].value = -1e9 - float64(i)
	}
	for _, t := range trials[:leader] {
		for i := range t.reports {
			if t.reports[i].value < -1e9 {
				t.reports[i].value = 0
			}
		}
	}
	if v := s.Rule.Judge(curves(stopping.Minimize, trials, same), leader); v.Stop {
		rt.Fatalf("the best trial is stopped: %s", v.Reason)
	}
	alone := drawSearch(rt, false)
	alone = alone[len(alone)-1:]
	if v := s.Rule.Judge(curves(stopping.Minimize, alone, same), 0); v.Stop {
		rt.Fatalf("the only trial is stopped: %s", v.Reason)
	}
}

// testLimits checks that limits set in advance stop a trial that the rule
// stops, from the first of them on.
func testLimits(rt *rapid.T, s Subject) {
	limiter, ok := s.Rule.(stopping.Limiter)
	if !ok {
		return
	}
	trials := drawSearch(rt, false)
	running := len(trials) - 1
	for _, d := range []stopping.Direction{stopping.Minimize, stopping.Maximize} {
		c := curves(d, trials, same)
		limits := limiter.Limits(c)
		reports := trials[running].reports
		if len(reports) == 0 || len(limits) == 0 || reports[len(reports)-1].step < limits[0].Step {
			continue
		}
		here := func(l stopping.Limit) bool { return l.Step == reports[len(reports)-1].step }
		if limits[0].Best && !slices.ContainsFunc(limits, here) {
			continue // only a trial that reports at all steps is judged where limits are
		}
		if v := s.Rule.Judge(c, running); v.Stop && !exceeds(d, limits, reports) {
			rt.Fatalf("trial with %v is stopped (%s), but is within the limits %+v", reports, v.Reason, limits)
		}
	}
}

// exceeds reports whether some reports leave the limits with the last.
func exceeds(d stopping.Direction, limits []stopping.Limit, reports []report) bool {
	last := reports[len(reports)-1]
	best := reports[0].value
	for _, r := range reports {
		if d == stopping.Minimize && r.value < best || d == stopping.Maximize && r.value > best {
			best = r.value
		}
	}
	for _, less := range []bool{false, true} {
		for i := len(limits) - 1; i >= 0; i-- {
			l := limits[i]
			if l.Less != less || l.Step > last.step {
				continue
			}
			value := last.value
			if l.Best {
				value = best
			}
			if less && value < l.Value || !less && value > l.Value {
				return true
			}
			break
		}
	}
	return false
}

// testStops checks that the rule is useful: of many trials, which end, as far
// as the rule lets them, at levels in no order and improve at first, it stops
// some of the worse half, and those before their end.
func testStops(t *testing.T, s Subject) {
	const steps, trials = 50, 60
	c := stopping.NewCurves(stopping.Minimize)
	var stopped []string
	early, worse := 0, 0
	for i := range trials {
		level := float64(i*37%trials) / trials
		state := stopping.Complete
		for step := range steps {
			wave := 0.003 * math.Sin(float64(step)*12.9898+float64(i)*78.233)
			c.Report(i, step+1, level+math.Exp(-math.Min(float64(step), 25)/5)+wave)
			if v := s.Rule.Judge(c, i); v.Stop {
				stopped = append(stopped, fmt.Sprintf("level %.2f at step %d: %s", level, step+1, v.Reason))
				state = stopping.Stopped
				if step < steps-1 {
					early++
				}
				if level >= 0.5 {
					worse++
				}
				break
			}
		}
		c.End(i, state)
	}
	if worse < 5 || early < len(stopped) {
		t.Errorf("%d trials are stopped, %d of the worse half, %d before the end: want some, and all of these:\n%s",
			len(stopped), worse, early, strings.Join(stopped, "\n"))
	}
}
