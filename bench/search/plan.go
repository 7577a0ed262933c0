// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"diwan.dev/diwan/bench/search/problem"
	"diwan.dev/diwan/bench/search/result"
)

// task is one search to run.
type task struct {
	problem   *problem.Problem
	optimiser string
	seed      uint64
	parallel  int
	trials    int
	limit     time.Duration
}

func (t task) key() result.Key {
	return result.Key{Problem: t.problem.Name, Optimiser: t.optimiser, Seed: t.seed, Parallel: t.parallel}
}

// campaign is a set of searches: every optimizer on every problem.
type campaign struct {
	families   []string
	dims       []int // of bbob and noisy
	first, n   int   // instances
	sample     int   // how many of the problems to take at random, 0 for all
	optimisers []string
	seeds      int
	parallel   []int
	trials     int
	limit      time.Duration // of CPU time a search; 0 for that of the flags
}

// problems returns the campaign's problems. The sample takes from each family
// in turn and, within it, at random, but the same each time.
func (c campaign) problems(models problem.Evaluator) []*problem.Problem {
	var byFamily [][]*problem.Problem
	total := 0
	for _, family := range c.families {
		problems := problem.Family(family, c.dims, c.first, c.n, models)
		total += len(problems)
		byFamily = append(byFamily, problems)
	}
	if c.sample > 0 && c.sample < total {
		for _, problems := range byFamily {
			// The same order for each family, so that a smaller sample is a part
			// of a greater one.
			numbers := rand.New(rand.NewPCG(uint64(c.first), 7))
			numbers.Shuffle(len(problems), func(i, j int) { problems[i], problems[j] = problems[j], problems[i] })
		}
		total = c.sample
	}
	var chosen []*problem.Problem
	for i := 0; len(chosen) < total; i++ {
		for _, problems := range byFamily {
			if i < len(problems) && len(chosen) < total {
				chosen = append(chosen, problems[i])
			}
		}
	}
	return chosen
}

// tasks returns the campaign's searches.
func (c campaign) tasks(models problem.Evaluator) (tasks []task) {
	for _, p := range c.problems(models) {
		for _, optimiser := range c.optimisers {
			for seed := range c.seeds {
				for _, parallel := range c.parallel {
					tasks = append(tasks, task{p, optimiser, uint64(seed + 1), parallel, c.trials, c.limit})
				}
			}
		}
	}
	return tasks
}

// plan joins campaigns. Searches of one optimizer stand together, so that its
// process starts once; the slowest come first, so that they do not end alone.
func plan(campaigns []campaign, models problem.Evaluator) []task {
	longest := map[result.Key]task{}
	for _, c := range campaigns {
		for _, t := range c.tasks(models) {
			if have, ok := longest[t.key()]; !ok || have.trials < t.trials {
				longest[t.key()] = t
			}
		}
	}
	tasks := make([]task, 0, len(longest))
	for _, t := range longest {
		tasks = append(tasks, t)
	}
	slices.SortFunc(tasks, func(a, b task) int {
		return cmp.Or(
			cmp.Compare(paceOf(b.optimiser), paceOf(a.optimiser)), strings.Compare(a.optimiser, b.optimiser),
			strings.Compare(a.problem.Name, b.problem.Name), cmp.Compare(a.seed, b.seed), cmp.Compare(a.parallel, b.parallel),
		)
	})
	return tasks
}
