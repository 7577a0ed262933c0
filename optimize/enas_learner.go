// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"context"
	"math"
	"slices"

	"diwan.dev/diwan/optimize/internal/controller"
	"diwan.dev/diwan/optimize/internal/random"
)

// learner rebuilds what the controller has learnt from a history. Episode by
// episode, in the order of their suggestions, it has TrainSteps lessons on those
// so far. It keeps some controllers along the way, so that a result that comes
// late costs only what follows it.
type learner struct {
	ENASConfig
	seed               uint64
	layers, operations int
	states             []state // by how far they are
}

// episode is an architecture that was tried.
type episode struct {
	decisions []int
	loss      float64 // less is better; +Inf where it failed
}

func (e episode) equal(o episode) bool {
	return e.loss == o.loss && slices.Equal(e.decisions, o.decisions)
}

// state is what was learnt from some episodes.
type state struct {
	episodes []episode
	before   []float64 // log-probability of each when it was new
	policy   *controller.Controller
}

// kept is how many of the latest states are kept; of those before, ever fewer.
const kept = 16

// learn returns the controller that has learnt from a history.
func (l *learner) learn(ctx context.Context, h *History) (*controller.Controller, error) {
	episodes := episodesOf(h)
	for len(l.states) > 0 && !startsWith(episodes, l.states[len(l.states)-1].episodes) {
		l.states = l.states[:len(l.states)-1]
	}
	for i := range l.states { // so that they share one list
		l.states[i].episodes = episodes[:len(l.states[i].episodes)]
	}
	if len(l.states) == 0 {
		l.states = []state{{policy: controller.New(l.controller(), random.New(l.seed, math.MaxUint64).Float)}}
	}
	for {
		last := l.states[len(l.states)-1]
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if len(last.episodes) == len(episodes) {
			return last.policy, nil
		}
		l.states = append(l.states, l.advance(last, episodes[:len(last.episodes)+1]))
		l.states = thin(l.states)
	}
}

func (l *learner) controller() controller.Config {
	return controller.Config{
		Layers: l.layers, Operations: l.operations, Hidden: l.Hidden,
		Temperature: l.Temperature, Tanh: l.Tanh, EntropyWeight: l.EntropyWeight,
		SkipTarget: math.Min(math.Max(l.SkipTarget, 0.001), 0.999), SkipWeight: l.SkipWeight,
		LearningRate: l.LearningRate,
	}
}

// advance returns the state after one more episode.
func (l *learner) advance(s state, episodes []episode) state {
	next := state{episodes: episodes, policy: s.policy.Clone()}
	newest := episodes[len(episodes)-1].decisions
	next.before = append(slices.Clone(s.before), next.policy.LogProbability(newest))
	lessons := make([]controller.Episode, len(episodes))
	for i, a := range l.advantages(episodes) {
		lessons[i] = controller.Episode{Decisions: episodes[i].decisions, Advantage: a, Before: next.before[i]}
	}
	numbers := random.New(l.seed, math.MaxUint64-uint64(len(episodes)))
	next.policy.Learn(lessons, l.TrainSteps, numbers.Float)
	return next
}

// advantages returns by how much each episode's reward exceeds the baseline,
// the mean of the rewards in which the latest count most.
func (l *learner) advantages(episodes []episode) []float64 {
	rewards := rewards(episodes)
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

// rewards returns the normal score of the rank of each episode, from best to
// worst, equal for equals.
func rewards(episodes []episode) []float64 {
	order := make([]int, len(episodes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case episodes[a].loss < episodes[b].loss:
			return -1
		case episodes[a].loss > episodes[b].loss:
			return 1
		}
		return 0
	})
	scores := make([]float64, len(episodes))
	for from := 0; from < len(order); {
		to := from
		for to < len(order) && episodes[order[to]].loss == episodes[order[from]].loss {
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

// episodesOf returns what a history knows, known results first and then by
// index.
func episodesOf(h *History) []episode {
	var episodes []episode
	for _, t := range h.Known() {
		episodes = append(episodes, episodeOf(h, t))
	}
	for i := range h.Len() {
		if t := h.Trial(i); t.State != Pending && t.State != Lost {
			episodes = append(episodes, episodeOf(h, t))
		}
	}
	return episodes
}

func episodeOf(h *History, t Trial) episode {
	e := episode{decisions: make([]int, len(t.Point.at)), loss: math.Inf(1)}
	for i, at := range t.Point.at {
		e.decisions[i] = int(at)
	}
	if len(t.Values) > 0 && t.Feasible() {
		e.loss = h.Direction().loss(t.Value())
	}
	return e
}

func startsWith(list, start []episode) bool {
	return len(list) >= len(start) && slices.EqualFunc(list[:len(start)], start, episode.equal)
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
