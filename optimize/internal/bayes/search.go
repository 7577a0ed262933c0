// SPDX-License-Identifier: Apache-2.0

package bayes

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"diwan.dev/diwan/optimize/internal/acquisition"
	"diwan.dev/diwan/optimize/internal/gp"
	"diwan.dev/diwan/optimize/internal/pareto"
)

// Rule names an acquisition function of one objective.
type Rule int

// The rules.
const (
	// ExpectedImprovement on the best value.
	ExpectedImprovement Rule = iota
	// ImprovementProbability is that of a value better than the best by a
	// hundredth of the deviation of all.
	ImprovementProbability
	// ConfidenceBound is the mean less 1.96 deviations.
	ConfidenceBound
)

// function returns the acquisition function of the rule.
func (r Rule) function(best float64) acquisition.Function {
	switch r {
	case ImprovementProbability:
		return acquisition.LogProbability(best - 0.01)
	case ConfidenceBound:
		return acquisition.Bound(1.96)
	}
	return acquisition.LogImprovement(best)
}

// Config says how a search works.
type Config struct {
	// Candidates is how many points are rated for a proposal, from 2; Starts
	// how many of the best of them are climbed from.
	Candidates, Starts int
	// Limit is how many observations a model uses at most, from 8. Its cost
	// grows with their cube when the kernel is found, else with their square.
	Limit int
	// Local makes every other proposal one that minimizes a model of the
	// neighborhood of the best point.
	Local bool
}

// DefaultConfig returns a configuration that takes some milliseconds for a
// proposal after some hundred observations of ten dimensions.
func DefaultConfig() Config {
	return Config{Candidates: 150, Starts: 3, Limit: 300, Local: true}
}

// Search proposes points of one unit cube. Several goroutines may use it at
// once.
type Search struct {
	config   Config
	features features
	prior    gp.Prior

	mu   sync.Mutex
	fits map[[2]uint64]fit
}

// New returns a search.
func New(dimensions []Dimension, c Config) *Search {
	return &Search{
		config: c, features: newFeatures(dimensions),
		prior: gp.DefaultPrior(len(dimensions)),
		fits:  map[[2]uint64]fit{},
	}
}

// Query is what a proposal depends on beside the data.
type Query struct {
	// Rule rates points for one objective.
	Rule Rule
	// Turn counts proposals; every other one is local.
	Turn int
	// Snap returns the point of the search nearest to a point of the cube, and
	// whether it may be proposed.
	Snap func(u []float64) (point []float64, ok bool)
	// Random returns numbers between 0 and 1.
	Random func() float64
}

// Propose returns points to evaluate next, the best first, for at least one
// observation.
func (s *Search) Propose(d Data, q Query) [][]float64 {
	r := &rating{features: s.features}
	var objectives []outcome
	for _, of := range d.outcomesOfObjectives(q.Random) {
		m, o := s.model(d, of)
		objectives = append(objectives, o)
		r.models = append(r.models, m)
	}
	constraints := d.constraints()
	for k := range constraints {
		m, _ := s.model(d, func(d *Data, _ float64) outcome { return d.constraint(k) })
		r.models = append(r.models, m)
	}
	best := d.bestPoints(objectives)
	r.function = d.function(objectives, q.Rule, constraints)
	if s.config.Local && q.Turn%2 == 1 && d.Objectives == 1 && constraints == 0 && len(best) > 0 {
		if p, ok := s.local(d, best[0], r.models[0].Kernel(), q); ok {
			return [][]float64{p}
		}
	}
	r.expect(d.Pending)
	r.prepare()
	return s.maximize(r, best, q)
}

// outcomesOfObjectives returns how the outcomes to model come from the data:
// one for each objective, or one for many.
func (d *Data) outcomesOfObjectives(random func() float64) []outcomes {
	if d.Objectives > exactObjectives {
		weights := randomWeights(d.Objectives, random)
		return []outcomes{func(d *Data, bend float64) outcome { return d.scalarised(weights, bend) }}
	}
	var all []outcomes
	for k := range d.Objectives {
		all = append(all, func(d *Data, bend float64) outcome { return d.objective(k, bend) })
	}
	return all
}

// exactObjectives is how many objectives have a hypervolume that is cheap
// enough to expect exactly; more are combined into one.
const exactObjectives = 3

// function returns what the models' predictions are rated by.
func (d *Data) function(objectives []outcome, rule Rule, constraints int) acquisition.Function {
	var f acquisition.Function
	if len(objectives) > 1 {
		f = d.hypervolume(objectives)
	} else if best := d.best(objectives[0]); !math.IsInf(best, 1) {
		f = rule.function(best)
		if constraints > 0 && rule == ConfidenceBound { // which is no logarithm
			f = acquisition.LogImprovement(best)
		}
	}
	if constraints > 0 || f == nil {
		return acquisition.Feasible(f, len(objectives))
	}
	return f
}

// best returns the least output of a feasible observation, +Inf for none.
func (d *Data) best(o outcome) float64 {
	best := math.Inf(1)
	for i, row := range o.rows {
		if d.Observations[row].feasible() {
			best = min(best, o.outputs[i])
		}
	}
	return best
}

// hypervolume returns the expected growth of the volume that the feasible
// observations dominate.
func (d *Data) hypervolume(objectives []outcome) acquisition.Function {
	all := make([][]float64, len(objectives[0].rows))
	var feasible [][]float64
	for i, row := range objectives[0].rows {
		for _, o := range objectives {
			all[i] = append(all[i], o.outputs[i])
		}
		if d.Observations[row].feasible() {
			feasible = append(feasible, all[i])
		}
	}
	reference := pareto.Reference(all)
	var front [][]float64
	for i, rank := range pareto.Fronts(feasible) {
		if rank == 0 {
			front = append(front, feasible[i])
		}
	}
	if limit := 40; len(objectives) > 2 && len(front) > limit {
		front = pick(front, pareto.Select(front, reference, limit))
	}
	return acquisition.LogHypervolume(front, reference)
}

// bestPoints returns the points of the best few feasible observations by the
// sum of their outputs, or of all observations where none is feasible.
func (d *Data) bestPoints(objectives []outcome) [][]float64 {
	rows := objectives[0].rows
	sums := make([]float64, len(rows))
	var all, order []int
	for i, row := range rows {
		for _, o := range objectives {
			sums[i] += o.outputs[i]
		}
		all = append(all, i)
		if d.Observations[row].feasible() {
			order = append(order, i)
		}
	}
	if len(order) == 0 {
		order = all
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sums[a], sums[b]) })
	var best [][]float64
	for _, i := range order[:min(len(order), bestCount)] {
		best = append(best, d.Observations[rows[i]].Point)
	}
	return best
}

const bestCount = 5

// randomWeights returns numbers that add up to 1, all such being as likely.
func randomWeights(n int, random func() float64) []float64 {
	sum := 0.0
	weights := make([]float64, n)
	for k := range weights {
		weights[k] = -math.Log(random())
		sum += weights[k]
	}
	for k := range weights {
		weights[k] /= sum
	}
	return weights
}

// scalarised returns one outcome for several objectives: the greatest of their
// outputs, each from 0 to 1 and times its weight, and a little of their sum
// (the augmented Chebyshev function of ParEGO, Knowles 2006).
func (d *Data) scalarised(weights []float64, bend float64) outcome {
	values, sums := make([]float64, len(d.Observations)), make([]float64, len(d.Observations))
	for k, weight := range weights {
		outputs := d.objective(k, 0).outputs
		lo, hi := slices.Min(outputs), slices.Max(outputs)
		for i, v := range outputs {
			v = weight * (v - lo) / max(hi-lo, 1e-9)
			values[i] = max(values[i], v)
			sums[i] += v
		}
	}
	for i, v := range sums {
		values[i] += 0.05 * v
	}
	return warped(values, bend)
}
