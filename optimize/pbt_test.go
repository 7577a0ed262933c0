// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"diwan.dev/diwan/optimize/internal/random"
)

// sgd trains a linear model of two weights by stochastic gradient descent, from
// a checkpoint and to one. The loss is ill conditioned and its gradients are
// noisy: a great learning rate is fast, a small one gets closer in the end.
type sgd struct{ dir string }

const steps = 20 // of one trial

func (s sgd) train(t *testing.T, trial, parent int, rate float64) (loss float64) {
	t.Helper()
	weights := [2]float64{5, 5}
	if parent >= 0 {
		s.file(t, parent, func(path string) error {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return json.Unmarshal(data, &weights)
		})
	}
	noise := random.New(99, uint64(trial))
	curvature := [2]float64{1, 0.1}
	for range steps {
		for i, w := range weights {
			weights[i] -= rate * (curvature[i]*w + 0.5*noise.Normal())
		}
	}
	s.file(t, trial, func(path string) error {
		data, err := json.Marshal(weights)
		if err != nil {
			return err
		}
		return os.WriteFile(path, data, 0o600)
	})
	for i, w := range weights {
		loss += curvature[i] * w * w / 2
	}
	return loss
}

func (s sgd) file(t *testing.T, trial int, do func(path string) error) {
	t.Helper()
	if err := do(filepath.Join(s.dir, fmt.Sprint(trial))); err != nil {
		t.Fatalf("checkpoint of trial %d: %v", trial, err)
	}
}

// TestPBTSchedule trains with population based training on five workers, and
// checks that the schedule of learning rates that it finds beats each of forty
// constant ones that trains as long as one member.
func TestPBTSchedule(t *testing.T) {
	t.Parallel()
	const members, generations = 10, 20
	best := math.Inf(1)
	for k := range 40 {
		model, parent := sgd{t.TempDir()}, -1
		rate := math.Pow(10, -4+4*float64(k)/39)
		for g := range generations {
			trial := 1000*(k+1) + g
			best = math.Min(best, model.train(t, trial, parent, rate))
			parent = trial
		}
	}

	space, err := NewSpace(Double("rate", 1e-4, 1).Log())
	if err != nil {
		t.Fatal(err)
	}
	sampler, err := NewPBT(space, 7, PBTConfig{Population: members, Truncation: 0.3, Resample: -1})
	if err != nil {
		t.Fatal(err)
	}
	model, h, found := sgd{t.TempDir()}, NewHistory(space), math.Inf(1)
	var busy []int
	order := random.New(3, 0)
	for h.Len() < members*generations {
		for len(busy) < 5 {
			p, err := sampler.Sample(t.Context(), h)
			if err != nil {
				t.Fatal(err)
			}
			busy = append(busy, h.Add(p))
		}
		k := int(order.Uint64() % uint64(len(busy))) // workers end in any order
		i := busy[k]
		busy = append(busy[:k], busy[k+1:]...)
		parent := -1
		if text, ok := h.Trial(i).Point.Labels()[PBTParentLabel]; ok {
			if parent, err = strconv.Atoi(text); err != nil {
				t.Fatal(err)
			}
		}
		loss := model.train(t, i, parent, h.Trial(i).Point.Float("rate"))
		found = math.Min(found, loss)
		if err := h.Tell(i, Values(loss)); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("loss %.3g; of the best constant rate %.3g", found, best)
	if found >= best {
		t.Errorf("loss is %v: want less than that of the best constant rate, %v", found, best)
	}
}

// TestPBTExploit checks who goes on from whom.
func TestPBTExploit(t *testing.T) {
	t.Parallel()
	space, err := NewSpace(Double("x", 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	type result struct {
		State State
		Value float64
	}
	tests := map[string]struct {
		reason string
		values []result // of members 0 to 4
		parent int      // of the first trial of generation 1, which is of member 0
	}{
		"Good":   {"A good member goes on from itself.", []result{{Complete, 1}, {Complete, 2}, {Complete, 3}, {Complete, 4}, {Complete, 5}}, 0},
		"Middle": {"One in the middle does too.", []result{{Complete, 3}, {Complete, 2}, {Complete, 1}, {Complete, 4}, {Complete, 5}}, 0},
		"Bad":    {"A bad one goes on from the best.", []result{{Complete, 6}, {Complete, 2}, {Complete, 1}, {Complete, 4}, {Complete, 5}}, 2},
		"Failed": {"So does one that failed.", []result{{Failed, 0}, {Complete, 2}, {Complete, 4}, {Complete, 1}, {Complete, 5}}, 3},
		"Only":   {"The only one with a value goes on from itself.", []result{{Complete, 1}, {Failed, 0}, {Failed, 0}, {Failed, 0}, {Failed, 0}}, 0},
		"None":   {"Where all have failed, a new one begins.", []result{{Failed, 0}, {Failed, 0}, {Failed, 0}, {Failed, 0}, {Failed, 0}}, -1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sampler, err := NewPBT(space, 1, PBTConfig{Population: 5, Truncation: 0.2, Resample: -1})
			if err != nil {
				t.Fatal(err)
			}
			h := NewHistory(space)
			sample := func() Point {
				p, err := sampler.Sample(t.Context(), h)
				if err != nil {
					t.Fatal(err)
				}
				return p
			}
			for range tc.values {
				if diff := cmp.Diff(map[string]string{PBTGenerationLabel: "0"}, sample().Labels()); diff != "" {
					t.Errorf("labels of generation 0: -want, +got:\n%s", diff)
				}
				h.Add(sample())
			}
			for i, r := range tc.values {
				result := Result{State: r.State}
				if r.State == Complete {
					result = Values(r.Value)
				}
				if err := h.Tell(i, result); err != nil {
					t.Fatal(err)
				}
			}
			p := sample()
			want := map[string]string{PBTGenerationLabel: "0"}
			if tc.parent >= 0 {
				want = map[string]string{PBTGenerationLabel: "1", PBTParentLabel: strconv.Itoa(tc.parent), PBTMemberLabel: "0"}
				x, y := h.Trial(tc.parent).Point.Float("x"), p.Float("x")
				if y != math.Min(1.2*x, 1) && y != 0.8*x {
					t.Errorf("x is %v: want 0.8 or 1.2 times that of the parent, %v", y, x)
				}
			}
			if diff := cmp.Diff(want, p.Labels()); diff != "" {
				t.Errorf("%s labels: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPBTBusy checks that more workers than members are not kept waiting.
func TestPBTBusy(t *testing.T) {
	t.Parallel()
	space, err := NewSpace(Int("n", 1, 3))
	if err != nil {
		t.Fatal(err)
	}
	sampler, err := NewPBT(space, 1, PBTConfig{Population: 5, Truncation: 0.2, Resample: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	h := NewHistory(space)
	for range 12 {
		p, err := sampler.Sample(t.Context(), h)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Labels()[PBTGenerationLabel]; got != "0" {
			t.Errorf("suggestion %d is of generation %s: want 0", h.Len(), got)
		}
		h.Add(p)
	}
}

func TestPerturb(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		parameter Parameter
		from      string
		down, up  string
		reason    string
	}{
		"Double":      {Double("x", 0, 10), "5", "4", "6", "It is multiplied."},
		"Bound":       {Double("x", 0, 10), "9", "7.2", "10", "It stays within bounds."},
		"Negative":    {Double("x", -10, 10), "-5", "-4", "-6", "A negative number too."},
		"Zero":        {Double("x", -10, 10), "0", "-1", "1", "Zero moves by a twentieth of the range."},
		"Step":        {Double("x", 0, 1).By(0.25), "0.5", "0.25", "0.75", "It changes by a step at least."},
		"Int":         {Int("x", 0, 100), "50", "40", "60", "An int stays whole."},
		"SmallInt":    {Int("x", 1, 8), "2", "1", "3", "A small int changes too."},
		"LeastInt":    {Int("x", 1, 8), "1", "2", "2", "At its end it has one way to go."},
		"Discrete":    {Discrete("x", 30, 10, 20), "20", "10", "30", "A list of numbers is in order."},
		"Last":        {Discrete("x", 30, 10, 20), "30", "20", "20", "It ends."},
		"Ordered":     {Ordered("x", "s", "m", "l"), "s", "m", "m", "So does an ordered list."},
		"Categorical": {Categorical("x", "a", "b", "c"), "a", "c", "b", "A list without order goes round."},
		"Single":      {Categorical("x", "a"), "a", "a", "a", "One value has no other."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			space, err := NewSpace(tc.parameter)
			if err != nil {
				t.Fatal(err)
			}
			p, err := space.Parse([]Assignment{{"x", tc.from}})
			if err != nil {
				t.Fatal(err)
			}
			a := &space.axes[0]
			got := []string{a.format(a.perturb(p.at[0], false)), a.format(a.perturb(p.at[0], true))}
			if diff := cmp.Diff([]string{tc.down, tc.up}, got); diff != "" {
				t.Errorf("%s Values: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
