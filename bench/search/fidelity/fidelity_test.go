// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestNetworkGradient compares the gradient of backpropagation with
// differences of the loss.
func TestNetworkGradient(t *testing.T) {
	t.Parallel()
	rows, err := readDigits()
	if err != nil {
		t.Fatal(err)
	}
	data := dataset{train: rows[:1], validation: rows[:1]}
	n := newNetwork(&data, []float64{0.1, 0, 4, 0, 6, 0.3, 1}, 1)
	n.backward(&rows[0], 1)
	for i := 0; i < len(n.weights); i += 7 {
		const step = 1e-6
		at := n.weights[i]
		n.weights[i] = at + step
		above := n.loss(data.train)
		n.weights[i] = at - step
		below := n.loss(data.train)
		n.weights[i] = at
		if want := (above - below) / (2 * step); math.Abs(n.gradient[i]-want) > 1e-5 {
			t.Errorf("weight %d: gradient %v, want %v", i, n.gradient[i], want)
		}
	}
}

// TestDigitsLearn checks that a network with settings as one would choose them
// learns the digits, that its curve does not depend on how it is asked for, and
// that one that diverges has a loss all the same.
func TestDigitsLearn(t *testing.T) {
	t.Parallel()
	f, err := Digits()
	if err != nil {
		t.Fatal(err)
	}
	good := []float64{0.1, 0.9, 16, 1e-4, 32, 0.1, 0.95}
	one, other := f.Begin(good, 1), f.Begin(good, 1)
	one.Train(3)
	one.Train(10)
	other.Train(10)
	if one.Observed() != other.Observed() {
		t.Errorf("loss after 10 epochs is %v, and at once %v", one.Observed(), other.Observed())
	}
	if one.Observed() > 0.5 || one.Actual() > 0.5 {
		t.Errorf("loss after 10 epochs is %v and %v: want less than 0.5", one.Observed(), one.Actual())
	}
	wild := f.Begin([]float64{3, 0.99, 4, 1, 32, 3, 1}, 1)
	wild.Train(3)
	if loss := wild.Observed(); !(loss > 2 && loss <= worst) {
		t.Errorf("loss of a network that diverges is %v", loss)
	}
}

// TestSyntheticCrosses checks that curves cross where they are to: among the
// configurations that end best, the order after 3 epochs says less of that at
// the end.
func TestSyntheticCrosses(t *testing.T) {
	t.Parallel()
	concordant := func(traits Traits) (part float64) {
		f := Synthetic(traits, 7)
		numbers := rand.New(rand.NewPCG(1, 1))
		curves := make([]Curve, 2000)
		for i := range curves {
			at := make([]float64, dimensions)
			for i := range at {
				at[i] = numbers.Float64()
			}
			curves[i] = f.Begin(at, 1)
		}
		actual := func(c Curve, epoch int) float64 {
			c.Train(epoch)
			return c.Actual()
		}
		slices.SortFunc(curves, func(a, b Curve) int { return cmp.Compare(actual(a, Epochs), actual(b, Epochs)) })
		best := curves[:200]
		for i := range 100 {
			if actual(best[i], 3) < actual(best[100+i], 3) {
				part += 0.01
			}
		}
		return part
	}
	if aligned, crossing := concordant(Traits{}), concordant(Traits{Crossing: 1}); aligned < 0.65 || crossing > aligned-0.1 {
		t.Errorf("pairs in the same order: %v of aligned curves, %v of those that cross", aligned, crossing)
	}
}

// TestMeasure measures a little, and checks what must hold of any measurement.
func TestMeasure(t *testing.T) {
	t.Parallel()
	p := Plan{
		Families: []Family{Synthetic(Traits{Name: "aligned"}, 7)}, Searches: Ours(), Trials: 15, Seeds: 3, Jobs: 2,
	}
	p.Searches = append(p.Searches, Pruned("absent", "/no/such/python"))
	outcomes, err := Measure(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Measure(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range outcomes {
		switch {
		case o != again[i]:
			t.Errorf("outcome is %+v, and again %+v", o, again[i])
		case !(o.Part > 0 && o.Part <= o.Again && o.Again <= 1):
			t.Errorf("parts of %+v are not in order", o)
		case !o.Reached && o.Part != 1:
			t.Errorf("%+v has not reached the target, but has a part", o)
		case (o.Error != "") != (o.Search == "absent"):
			t.Errorf("%+v", o)
		}
	}
	text := Report(p, outcomes)
	for _, want := range []string{"| asha |", "| random |", "- absent: cannot run"} {
		if !strings.Contains(text, want) {
			t.Errorf("report lacks %q:\n%s", want, text)
		}
	}
}

// TestLedger checks the counting of epochs: the second trial resumes where the
// first ended.
func TestLedger(t *testing.T) {
	t.Parallel()
	l := &ledger{budget: 10, target: 0.5}
	for _, turn := range []struct {
		epochs, again int
		curve         fixed
		full          bool
	}{
		{3, 3, fixed{2, 2.1}, false},
		{3, 3, fixed{3, 0.1}, false}, // better, but nobody sees it
		{2, 3, fixed{1, 0.5}, true},
	} {
		l.epochs += turn.epochs
		l.again += turn.again
		l.enter(turn.curve)
		if l.full() != turn.full {
			t.Errorf("after %+v the ledger is full: %v", turn, l.full())
		}
	}
	if got, want := fmt.Sprint(l.moments), "[{3 3 2.1} {8 9 0.5}]"; got != want {
		t.Errorf("moments are %s, want %s", got, want)
	}
}

// fixed is a curve that has come to its losses.
type fixed struct{ observed, actual float64 }

func (fixed) Train(int) {}

func (f fixed) Observed() float64 { return f.observed }

func (f fixed) Actual() float64 { return f.actual }

// TestParallel checks that the first failure ends the work.
func TestParallel(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	err := parallel(ctx, 1, 100, func(i int) error {
		calls++
		if i == 3 {
			cancel()
		}
		return nil
	})
	if err == nil || calls != 4 {
		t.Errorf("%d calls, %v: want 4, and an error", calls, err)
	}
}
