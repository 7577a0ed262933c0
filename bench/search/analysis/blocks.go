// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"math"
	"slices"
	"strings"

	"diwan.dev/diwan/bench/search/result"
)

// Runs are the runs of a benchmark, made ready to compare.
type Runs struct {
	byKey      map[result.Key]result.Run
	seeds      map[result.Key][]uint64 // by a key without a seed
	optimisers []string
	problems   []string
	budgets    []int              // after which searches are compared
	best       map[string]float64 // what is subtracted from values, by problem
}

// modelFamily is the family whose optima are not known.
const modelFamily = "model"

// New prepares runs. Those that never got a value are left out; [Failures]
// tells them.
func New(all []result.Run) *Runs {
	r := &Runs{byKey: map[result.Key]result.Run{}, seeds: map[result.Key][]uint64{}, best: map[string]float64{}, budgets: budgets(all)}
	for _, run := range all {
		if len(run.Steps) == 0 {
			continue
		}
		group := run.Key
		group.Seed = 0
		r.byKey[run.Key], r.seeds[group] = run, append(r.seeds[group], run.Seed)
		r.optimisers = append(r.optimisers, run.Optimiser)
		r.problems = append(r.problems, run.Problem)
		if Family(run.Problem) == modelFamily {
			least, ok := r.best[run.Problem]
			if last := run.Best(math.MaxInt); !ok || last < least {
				r.best[run.Problem] = last
			}
		}
	}
	for _, seeds := range r.seeds {
		slices.Sort(seeds)
	}
	slices.Sort(r.optimisers)
	slices.Sort(r.problems)
	r.optimisers, r.problems = slices.Compact(r.optimisers), slices.Compact(r.problems)
	return r
}

// Family returns the first part of a problem's name.
func Family(problem string) string {
	family, _, _ := strings.Cut(problem, "/")
	return family
}

// floor is the part of random's gap below which gaps count as equal.
func floor(family string) float64 {
	switch family {
	case modelFamily, "mixed":
		return 1e-3
	}
	return 1e-6
}

// gap returns a run's distance from the best after some trials.
func (r *Runs) gap(run result.Run, trials int) float64 {
	return run.Best(trials) - r.best[run.Problem]
}

// randomGap returns the mean gap of random search, NaN without one.
func (r *Runs) randomGap(problem string, parallel, trials int) float64 {
	for _, name := range r.optimisers {
		if !strings.HasSuffix(name, "/random") {
			continue
		}
		for _, pending := range []int{parallel, 1} { // results do not matter to it
			var gaps []float64
			for _, seed := range r.seeds[result.Key{Problem: problem, Optimiser: name, Parallel: pending}] {
				gaps = append(gaps, r.gap(r.byKey[result.Key{Problem: problem, Optimiser: name, Seed: seed, Parallel: pending}], trials))
			}
			if len(gaps) > 0 {
				return mean(gaps)
			}
		}
	}
	return math.NaN()
}

// Block is what some optimizers reached on one problem with one seed.
type Block struct {
	Problem string
	Seed    uint64
	// Gaps are in the order of the optimizers, as parts of random's mean gap
	// on the problem.
	Gaps []float64
}

// Select says which blocks to compare.
type Select struct {
	Optimisers []string
	Family     string // "" for all
	Parallel   int
	Trials     int
}

// Blocks returns the blocks in which every one of the optimizers has a run that
// was to have at least so many trials.
func (r *Runs) Blocks(s Select) []Block {
	if len(s.Optimisers) == 0 {
		return nil
	}
	var blocks []Block
	for _, problem := range r.problems {
		if s.Family != "" && Family(problem) != s.Family {
			continue
		}
		random := r.randomGap(problem, s.Parallel, s.Trials)
		if math.IsNaN(random) || random <= 0 {
			continue
		}
		for _, seed := range r.seeds[result.Key{Problem: problem, Optimiser: s.Optimisers[0], Parallel: s.Parallel}] {
			if gaps := r.block(s, problem, seed); gaps != nil {
				for i := range gaps {
					gaps[i] = math.Max(gaps[i]/random, floor(Family(problem)))
				}
				blocks = append(blocks, Block{problem, seed, gaps})
			}
		}
	}
	return blocks
}

func (r *Runs) block(s Select, problem string, seed uint64) []float64 {
	gaps := make([]float64, len(s.Optimisers))
	for i, optimiser := range s.Optimisers {
		run, ok := r.byKey[result.Key{Problem: problem, Optimiser: optimiser, Seed: seed, Parallel: s.Parallel}]
		if !ok || run.Trials < s.Trials {
			return nil
		}
		gaps[i] = r.gap(run, s.Trials)
		if math.IsInf(gaps[i], 1) {
			return nil
		}
	}
	return gaps
}

// MeanRanks returns the mean rank of each optimizer over blocks.
func MeanRanks(blocks []Block) []Interval {
	return perOptimiser(blocks, Bootstrap, func(b Block) []float64 { return Ranks(b.Gaps) })
}

// MeanGaps returns for each optimizer the geometric mean over problems of its
// gap as a fraction of random's, where a problem's gap is the mean over seeds.
func MeanGaps(blocks []Block) []Interval {
	var problems []Block
	seeds := 0
	for _, b := range blocks {
		if n := len(problems) - 1; n < 0 || problems[n].Problem != b.Problem {
			problems, seeds = append(problems, Block{Problem: b.Problem, Gaps: slices.Clone(b.Gaps)}), 1
			continue
		}
		seeds++
		last := problems[len(problems)-1].Gaps
		for i, gap := range b.Gaps {
			last[i] += (gap - last[i]) / float64(seeds)
		}
	}
	return perOptimiser(problems, Geometric, func(b Block) []float64 { return b.Gaps })
}

func perOptimiser(blocks []Block, summarise func([]float64) Interval, of func(Block) []float64) []Interval {
	if len(blocks) == 0 {
		return nil
	}
	columns := make([][]float64, len(blocks[0].Gaps))
	for _, b := range blocks {
		for i, v := range of(b) {
			columns[i] = append(columns[i], v)
		}
	}
	summaries := make([]Interval, len(columns))
	for i, column := range columns {
		summaries[i] = summarise(column)
	}
	return summaries
}
