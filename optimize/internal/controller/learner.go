// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"math"
	"slices"

	"diwan.dev/diwan/optimize/internal/random"
)

// Learner rebuilds what a controller has learned from the outcomes of a search.
// Outcome by outcome, it has some lessons on those so far. It keeps some
// controllers along the way, so that a late result only costs replaying what
// follows it.
type Learner struct {
	// Config of the controller.
	Config
	// Seed determines its weights at first and the order of the lessons.
	Seed uint64
	// BaselineDecay, from 0 to 1, is how much a reward counts in the baseline
	// beside the next: 1 is the mean of all rewards.
	BaselineDecay float64
	// Lessons is how many there are after each outcome, at least 1.
	Lessons int

	states []state // by how far they are
}

// Outcome is an architecture that was tried, and what came of it.
type Outcome struct {
	Decisions []int
	Loss      float64 // less is better; +Inf where it failed
}

func (o Outcome) equal(other Outcome) bool {
	return o.Loss == other.Loss && slices.Equal(o.Decisions, other.Decisions)
}

// state is what was learned from some outcomes.
type state struct {
	outcomes []Outcome
	before   []float64 // log-probability of each when it was new
	policy   *Controller
}

// kept is how many of the latest states are kept; of those before, ever fewer.
const kept = 16

// Learn returns the controller that has learned from some outcomes, in their
// order. The learner goes on from it: it may be sampled, but not taught.
func (l *Learner) Learn(ctx context.Context, outcomes []Outcome) (*Controller, error) {
	for len(l.states) > 0 && !startsWith(outcomes, l.states[len(l.states)-1].outcomes) {
		l.states = l.states[:len(l.states)-1]
	}
	for i := range l.states { // so that they share one list
		l.states[i].outcomes = outcomes[:len(l.states[i].outcomes)]
	}
	if len(l.states) == 0 {
		l.states = []state{{policy: New(l.Config, random.New(l.Seed, math.MaxUint64).Float)}}
	}
	for {
		last := l.states[len(l.states)-1]
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if len(last.outcomes) == len(outcomes) {
			return last.policy, nil
		}
		l.states = append(l.states, l.advance(last, outcomes[:len(last.outcomes)+1]))
		l.states = thin(l.states)
	}
}

// advance returns the state after one more outcome.
func (l *Learner) advance(s state, outcomes []Outcome) state {
	next := state{outcomes: outcomes, policy: s.policy.Clone()}
	newest := outcomes[len(outcomes)-1].Decisions
	next.before = append(slices.Clone(s.before), next.policy.LogProbability(newest))
	lessons := make([]Episode, len(outcomes))
	for i, a := range l.advantages(outcomes) {
		lessons[i] = Episode{Decisions: outcomes[i].Decisions, Advantage: a, Before: next.before[i]}
	}
	numbers := random.New(l.Seed, math.MaxUint64-uint64(len(outcomes)))
	next.policy.Learn(lessons, l.Lessons, numbers.Float)
	return next
}

// advantages returns by how much each outcome's reward exceeds the baseline,
// the mean of the rewards in which the latest count most.
func (l *Learner) advantages(outcomes []Outcome) []float64 {
	rewards := rewards(outcomes)
	sum, weights := 0.0, 0.0
	for _, r := range rewards {
		sum = l.BaselineDecay*sum + r
		weights = l.BaselineDecay*weights + 1
	}
	for i := range rewards {
		rewards[i] -= sum / weights
	}
	return rewards
}

// rewards returns the normal score of the rank of each outcome, from best to
// worst, equal for equals.
func rewards(outcomes []Outcome) []float64 {
	order := make([]int, len(outcomes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case outcomes[a].Loss < outcomes[b].Loss:
			return -1
		case outcomes[a].Loss > outcomes[b].Loss:
			return 1
		}
		return 0
	})
	scores := make([]float64, len(outcomes))
	for from := 0; from < len(order); {
		to := from
		for to < len(order) && outcomes[order[to]].Loss == outcomes[order[from]].Loss {
			to++
		}
		worse := 1 - float64(from+to)/2/float64(len(order)) // the part of them that are worse
		for _, i := range order[from:to] {
			scores[i] = math.Sqrt2 * math.Erfinv(2*worse-1)
		}
		from = to
	}
	return scores
}

func startsWith(list, start []Outcome) bool {
	return len(list) >= len(start) && slices.EqualFunc(list[:len(start)], start, Outcome.equal)
}

// thin drops states, oldest first: of those that are not among the latest, it
// keeps the ones whose distance from the end doubles.
func thin(states []state) []state {
	if len(states) <= 2*kept {
		return states
	}
	old, latest := states[:len(states)-kept], states[len(states)-kept:]
	var sparse []state
	for i, s := range old {
		if i == 0 || (len(old)-1-i)%2 == 0 {
			sparse = append(sparse, s)
		}
	}
	return append(sparse, latest...)
}
