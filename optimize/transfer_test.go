// SPDX-License-Identifier: Apache-2.0

package optimize_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"diwan.dev/diwan/optimize"
	"diwan.dev/diwan/optimize/optimizetest"
)

// record returns the history of some trials of a sampler.
func record(tb testing.TB, space *optimize.Space, s optimize.Sampler, n int, objective func(optimize.Point) float64) *optimize.History {
	tb.Helper()
	h := optimize.NewHistory(space)
	for range n {
		p, err := s.Sample(context.Background(), h)
		if err != nil {
			tb.Fatal(err)
		}
		if err := h.Tell(h.Add(p), optimize.Values(objective(p))); err != nil {
			tb.Fatal(err)
		}
	}
	return h
}

// TestTransfer runs it on top of random search, after an earlier search of the
// same space. Its first suggestion does not depend on the seed.
func TestTransfer(t *testing.T) {
	t.Parallel()
	optimizetest.Run(t, optimizetest.Subject{IgnoresSeed: true, New: func(space *optimize.Space, seed uint64) (optimize.Sampler, error) {
		earlier, random := optimize.NewHistory(space), optimize.NewRandom(3)
		for i := range 8 {
			p, err := random.Sample(context.Background(), earlier)
			if err != nil {
				break // the space has no more
			}
			if err := earlier.Tell(earlier.Add(p), optimize.Values([]float64{3, 1, math.Inf(1), 4, 1e308, -1e308, math.NaN(), 2}[i])); err != nil {
				return nil, err
			}
		}
		c := optimize.DefaultTransferConfig()
		c.Half = 4
		return optimize.NewTransfer(optimize.NewRandom(seed), space, []*optimize.History{earlier, earlier}, seed, c)
	}})
}

// bowls is a family of functions of three numbers: a bowl each, whose bottom
// lies somewhere near that of the others.
func bowls(space *optimize.Space, family uint64) func(member uint64, size float64) func(optimize.Point) float64 {
	place := func(seed uint64) []float64 {
		p, err := optimize.NewRandom(seed).Sample(context.Background(), optimize.NewHistory(space))
		if err != nil {
			panic(err)
		}
		return space.Unit(p)
	}
	middle := place(family)
	return func(member uint64, size float64) func(optimize.Point) float64 {
		shift := place(1000*family + member)
		return func(p optimize.Point) float64 {
			sum := 0.0
			for i, u := range space.Unit(p) {
				d := u - 0.2 - 0.6*middle[i] - size*(shift[i]-0.5)
				sum += float64(1+3*i) * d * d
			}
			return sum
		}
	}
}

// TestTransferGains compares the best of some trials with those of the sampler
// below alone, as the geometric mean of their ratio over many searches.
func TestTransferGains(t *testing.T) {
	t.Parallel()
	space := mustSpace(t, optimize.Double("a", 0, 1), optimize.Double("b", 1e-3, 1).Log(), optimize.Double("c", -1, 1))
	tests := map[string]struct {
		reason string
		source func(own func(uint64, float64) func(optimize.Point) float64, family, member uint64) func(optimize.Point) float64
		trials int
		most   float64
	}{
		"Shifted": {
			"Searches of functions that are shifted a little, and scaled, save most of the work.",
			func(own func(uint64, float64) func(optimize.Point) float64, _, member uint64) func(optimize.Point) float64 {
				f := own(member, 0.1)
				return func(p optimize.Point) float64 { return 1000*f(p) - 7 }
			}, 8, 0.4,
		},
		"Unrelated": {
			"Searches of other functions cost nothing.",
			func(_ func(uint64, float64) func(optimize.Point) float64, family, member uint64) func(optimize.Point) float64 {
				return bowls(space, 7000+10*family+member)(1, 0)
			}, 25, 1.1,
		},
		"Negated": {
			"Nor do those of the opposite.",
			func(own func(uint64, float64) func(optimize.Point) float64, _, _ uint64) func(optimize.Point) float64 {
				f := own(0, 0)
				return func(p optimize.Point) float64 { return -f(p) }
			}, 25, 1.3,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const searches = 20
			ratio := 0.0
			for family := range uint64(searches) {
				own := bowls(space, family)
				var sources []*optimize.History
				for member := range uint64(3) {
					sources = append(sources, record(t, space, optimize.NewRandom(family+100*member+1), 30, tc.source(own, family, member+1)))
				}
				base := optimize.NewRandom(family + 9000)
				warm, err := optimize.NewTransfer(base, space, sources, family, optimize.DefaultTransferConfig())
				if err != nil {
					t.Fatal(err)
				}
				with, _ := record(t, space, warm, tc.trials, own(0, 0)).Best()
				without, _ := record(t, space, base, tc.trials, own(0, 0)).Best()
				ratio += math.Log(with.Value()/without.Value()) / searches
			}
			if got := math.Exp(ratio); got > tc.most {
				t.Errorf("%s The best is %.2f of that without: want at most %.2f", tc.reason, got, tc.most)
			} else {
				t.Logf("the best is %.2f of that without", got)
			}
		})
	}
}

// TestRankSources checks the order of earlier searches, also of spaces and
// directions that differ.
func TestRankSources(t *testing.T) {
	t.Parallel()
	space := mustSpace(t, optimize.Double("rate", 1e-4, 1).Log(), optimize.Int("layers", 1, 8), optimize.Categorical("kind", "a", "b", "c"))
	other := mustSpace(t, optimize.Double("layers", 0.5, 12), optimize.Categorical("kind", "c", "b", "z"), optimize.Double("rate", 1e-6, 0.1), optimize.Double("more", 0, 1))
	objective := func(p optimize.Point) float64 {
		return math.Abs(math.Log10(p.Float("rate"))+2) + map[string]float64{"b": 2}[p.Text("kind")]
	}
	maximised := optimize.NewHistory(other, optimize.Maximize)
	for _, trial := range trialsOf(record(t, other, optimize.NewRandom(3), 80, objective)) {
		if err := maximised.Tell(maximised.Add(trial.Point), optimize.Values(-100*trial.Value())); err != nil {
			t.Fatal(err)
		}
	}
	sources := []*optimize.History{
		record(t, space, optimize.NewRandom(1), 40, func(p optimize.Point) float64 { return -objective(p) }),
		record(t, space, optimize.NewRandom(2), 40, func(p optimize.Point) float64 { return math.Sin(float64(40 * p.Int("layers"))) }),
		maximised,
		record(t, space, optimize.NewRandom(4), 1, objective),
	}
	got := optimize.RankSources(record(t, space, optimize.NewRandom(5), 20, objective), sources)
	if len(got) != 3 || got[0].Source != 2 || got[1].Source != 1 || got[2].Source != 0 {
		t.Fatalf("ranked %+v: want sources 2, 1, 0, and not 3, which has one result", got)
	}
	if got[0].Agreement < 0.3 || math.Abs(got[1].Agreement) > 0.35 || got[2].Agreement > -0.5 || got[0].Weight < 0.9 {
		t.Errorf("ranked %+v: want agreements near 1, 0 and -1, and nearly all weight on the first", got)
	}
}

func trialsOf(h *optimize.History) (trials []optimize.Trial) {
	for i := range h.Len() {
		trials = append(trials, h.Trial(i))
	}
	return trials
}

func TestTransferErrors(t *testing.T) {
	t.Parallel()
	space := mustSpace(t, optimize.Double("x", 0, 1))
	good := optimize.DefaultTransferConfig()
	for want, c := range map[string]optimize.TransferConfig{
		"Initial is -1":          {Initial: -1, Half: good.Half},
		"Half is 0":              {},
		"Optimism is not a numb": {Half: 1, Optimism: math.NaN()},
	} {
		if _, err := optimize.NewTransfer(optimize.NewRandom(1), space, nil, 1, c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("NewTransfer: %v: want an error that says %q", err, want)
		}
	}
	if _, err := optimize.NewTransfer(nil, space, nil, 1, good); err == nil {
		t.Error("NewTransfer without a base sampler: want an error")
	}
}

// TestTransferWithout checks that nothing changes where there is nothing to
// learn from.
func TestTransferWithout(t *testing.T) {
	t.Parallel()
	space := mustSpace(t, optimize.Double("x", 0, 1))
	s, err := optimize.NewTransfer(optimize.NewRandom(1), space, []*optimize.History{optimize.NewHistory(space)}, 1, optimize.DefaultTransferConfig())
	if err != nil {
		t.Fatal(err)
	}
	value := func(p optimize.Point) float64 { return p.Float("x") }
	got, want := record(t, space, s, 5, value), record(t, space, optimize.NewRandom(1), 5, value)
	for i := range got.Len() {
		if g, w := got.Trial(i).Point.String(), want.Trial(i).Point.String(); g != w {
			t.Errorf("suggestion %d is %s: want %s", i, g, w)
		}
	}
}

// Begins a search with what an earlier one, of another model, found.
func ExampleNewTransfer() {
	space, err := optimize.NewSpace(optimize.Double("rate", 1e-4, 1).Log(), optimize.Double("dropout", 0, 0.9))
	if err != nil {
		panic(err)
	}
	loss := func(p optimize.Point, rate float64) float64 {
		return math.Abs(math.Log10(p.Float("rate")/rate)) + p.Float("dropout")
	}
	earlier := optimize.NewHistory(space)
	for range 50 {
		p, err := optimize.NewRandom(1).Sample(context.Background(), earlier)
		if err != nil {
			panic(err)
		}
		if err := earlier.Tell(earlier.Add(p), optimize.Values(loss(p, 0.02))); err != nil {
			panic(err)
		}
	}
	sampler, err := optimize.NewTransfer(optimize.NewRandom(2), space, []*optimize.History{earlier}, 2, optimize.DefaultTransferConfig())
	if err != nil {
		panic(err)
	}
	study := optimize.NewStudy(space, optimize.Options{Sampler: sampler})
	for range 10 {
		trial, err := study.Ask(context.Background())
		if err != nil {
			panic(err)
		}
		if err := study.Tell(trial.Index, loss(trial.Point, 0.03)); err != nil {
			panic(err)
		}
	}
	best, _ := study.Best()
	fmt.Println(best.Value() < 0.3)
	// Output: true
}
