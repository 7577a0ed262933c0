// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"diwan.dev/diwan/optimize/internal/random"
)

// Preview is the estimated cost of a search over a resource.
type Preview struct {
	// Stages are the amounts of the resource that trials have, the least
	// first.
	Stages []Stage
	// Total is the total resource of all trials. Continued is the total if a
	// trial that is promoted to the next rung continues where its parent
	// stopped; see [LabelParent].
	Total, Continued float64
	// Elapsed is how long the search takes with the budget's parallel trials,
	// in units of the resource, if each trial takes as long as its resource.
	Elapsed float64
}

// Stage is how many trials of a search have some amount of the resource.
type Stage struct {
	Resource float64
	Trials   int
}

// PreviewSearch simulates a search with the budget's number of trials and
// parallelism, and counts its cost. Which configurations are the best is
// random. The resource names a double, int or discrete parameter.
func PreviewSearch(ctx context.Context, sampler Sampler, space *Space, resource string, b Budget) (Preview, error) {
	if err := space.check(); err != nil {
		return Preview{}, fmt.Errorf("cannot preview search: %w", err)
	}
	axis, ok := space.byName[resource]
	if !ok || space.axes[axis].Kind == KindCategorical || space.axes[axis].Kind == KindOrdered {
		return Preview{}, fmt.Errorf("cannot preview search: resource is %q: want the name of a numeric parameter", resource)
	}
	if b.MaxTrials < 1 {
		return Preview{}, fmt.Errorf("cannot preview search: budget has %d trials: want at least 1", b.MaxTrials)
	}
	s := simulation{history: NewHistory(space), amount: func(p Point) float64 { return space.axes[axis].amount(p.at[axis]) }}
	for {
		for len(s.running) < max(b.Parallel, 1) && s.history.Len() < b.MaxTrials {
			p, err := sampler.Sample(ctx, s.history)
			if errors.Is(err, ErrExhausted) {
				break
			}
			if err != nil {
				return Preview{}, fmt.Errorf("cannot preview search: %w", err)
			}
			s.begin(p)
		}
		if len(s.running) == 0 {
			return s.preview, nil
		}
		if err := s.end(); err != nil {
			return Preview{}, fmt.Errorf("cannot preview search: %w", err)
		}
	}
}

// simulation is a search whose trials take no time, and have random values.
type simulation struct {
	history *History
	amount  func(Point) float64
	preview Preview
	running []simulatedTrial // that which ends first is first
	losses  []float64        // by index: that of the configuration
	clock   float64
}

type simulatedTrial struct {
	index int
	end   float64
}

func (s *simulation) begin(p Point) {
	index, amount := s.history.Add(p), s.amount(p)
	loss, continued := random.New(0, uint64(index)).Float(), amount
	if parent := label(p, LabelParent); parent >= 0 && parent < index {
		loss, continued = s.losses[parent], amount-s.amount(s.history.trials[parent].Point)
	}
	s.losses = append(s.losses, loss)
	s.preview.Total += amount
	s.preview.Continued += continued
	at, found := slices.BinarySearchFunc(s.preview.Stages, amount, func(stage Stage, amount float64) int { return cmp.Compare(stage.Resource, amount) })
	if !found {
		s.preview.Stages = slices.Insert(s.preview.Stages, at, Stage{Resource: amount})
	}
	s.preview.Stages[at].Trials++
	trial := simulatedTrial{index, s.clock + amount}
	at, _ = slices.BinarySearchFunc(s.running, trial, func(a, b simulatedTrial) int {
		return cmp.Or(cmp.Compare(a.end, b.end), cmp.Compare(a.index, b.index))
	})
	s.running = slices.Insert(s.running, at, trial)
}

// end ends the trial that takes the shortest.
func (s *simulation) end() error {
	trial := s.running[0]
	s.running = s.running[1:]
	s.clock, s.preview.Elapsed = trial.end, trial.end
	return s.history.Tell(trial.index, Values(s.losses[trial.index]))
}
