// SPDX-License-Identifier: Apache-2.0

package bayes

import (
	"cmp"
	"hash/fnv"
	"math"
	"slices"

	"diwan.dev/diwan/optimize/internal/gp"
)

// outcomes is one kind of outcome as a function of the data.
type outcomes func(d *Data) outcome

// model returns the process that models an outcome, and the outcome of the
// observations that it has, without their noise. The kernel comes from the
// observations up to a stage, so that it serves until the next.
func (s *Search) model(d Data, of outcomes) (*gp.Model, outcome) {
	early := d
	early.Observations = d.Observations[:stage(len(d.Observations))]
	all, past := of(&d), of(&early)
	if len(past.rows) == 0 {
		past = all
	}
	past, all = past.chosen(min(s.config.Limit, fitLimit)), all.chosen(s.config.Limit)
	kernel := s.kernel(s.rows(d, past), past.outputs)
	m := gp.New(kernel, s.features.groups, s.rows(d, all), all.outputs)
	all.outputs = m.Smoothed()
	return m, all
}

// rows returns the features of the observations that an outcome has.
func (s *Search) rows(d Data, o outcome) [][]float64 {
	rows := make([][]float64, len(o.rows))
	for i, row := range o.rows {
		rows[i] = s.features.of(d.Observations[row].Point)
	}
	return rows
}

// fitLimit is how many observations a kernel is found from at most.
const fitLimit = 150

// Surrogate predicts an objective.
type Surrogate struct {
	features features
	model    *gp.Model
	outcome  outcome
}

// Surrogate returns the model of an objective, for at least one observation.
func (s *Search) Surrogate(d Data, objective int) Surrogate {
	of := func(d *Data) outcome { return d.objective(objective) }
	m, o := s.model(d, of)
	return Surrogate{s.features, m, o}
}

// Predict returns mean and deviation of the objective's loss at a point, in the
// unit of the losses, without the noise of an evaluation.
func (s Surrogate) Predict(point []float64) (mean, deviation float64) {
	output, variance := s.model.Predict(s.features.of(point))
	mean, slope := s.outcome.warp.Unwarp(output)
	return mean, math.Sqrt(variance) * slope
}

// LeaveOneOut returns which observations the model has, by index, and what loss
// it would predict for each of them from the others.
func (s Surrogate) LeaveOneOut() (observations []int, losses []float64) {
	losses = s.model.LeaveOneOut()
	for i, output := range losses {
		losses[i], _ = s.outcome.warp.Unwarp(output)
	}
	return s.outcome.rows, losses
}

// Noise returns the deviation of evaluations of one point, in the unit of the
// losses.
func (s Surrogate) Noise() float64 {
	_, slope := s.outcome.warp.Unwarp(0)
	return math.Sqrt(s.model.Kernel().Noise) * slope
}

// stage returns the number of observations, at most n, with which the kernel
// for n was found.
func stage(n int) int {
	at := min(n, firstStage)
	for {
		next := at + max(1, at/10)
		if next > n {
			return at
		}
		at = next
	}
}

const firstStage = 4

// kernel returns the likeliest kernel, and remembers it.
func (s *Search) kernel(rows [][]float64, outputs []float64) gp.Kernel {
	key := fingerprint(rows, outputs)
	s.mu.Lock()
	defer s.mu.Unlock()
	if k, ok := s.kernels[key]; ok {
		return k
	}
	k, _ := gp.Fit(s.prior, s.prior.Mode(), fitSteps, s.features.groups, rows, outputs)
	if len(s.kernels) >= remembered {
		clear(s.kernels)
	}
	s.kernels[key] = k
	return k
}

const (
	fitSteps   = 30
	remembered = 64
)

// fingerprint returns a number that different data do not share.
func fingerprint(rows [][]float64, outputs []float64) [2]uint64 {
	hash := fnv.New128a()
	var bytes []byte
	for i, row := range rows {
		bytes = bytes[:0]
		for _, v := range append(row[:len(row):len(row)], outputs[i]) {
			b := math.Float64bits(v)
			bytes = append(bytes, byte(b), byte(b>>8), byte(b>>16), byte(b>>24), byte(b>>32), byte(b>>40), byte(b>>48), byte(b>>56))
		}
		hash.Write(bytes)
	}
	var key [2]uint64
	for i, b := range hash.Sum(nil) {
		key[i/8] = key[i/8]<<8 | uint64(b)
	}
	return key
}

// chosen returns the outcome of some observations at most that stand for all:
// the best of them, half as many as the limit, and others evenly spread over the
// rest.
func (o outcome) chosen(limit int) outcome {
	n := len(o.rows)
	if n <= limit {
		return o
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(o.outputs[a], o.outputs[b]) })
	best := limit / 2
	rest := slices.Sorted(slices.Values(order[best:]))
	chosen := order[:best:best]
	for i := range limit - best {
		chosen = append(chosen, rest[i*len(rest)/(limit-best)])
	}
	slices.Sort(chosen)
	return outcome{pick(o.rows, chosen), pick(o.outputs, chosen), o.warp}
}

func pick[T any](from []T, indices []int) []T {
	picked := make([]T, len(indices))
	for i, at := range indices {
		picked[i] = from[at]
	}
	return picked
}
