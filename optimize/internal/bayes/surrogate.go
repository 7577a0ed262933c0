// SPDX-License-Identifier: Apache-2.0

package bayes

import (
	"hash/fnv"
	"math"
	"slices"

	"diwan.dev/diwan/optimize/internal/gp"
)

// model returns the process that models an outcome, given the points of its
// observations as features.
func (s *Search) model(rows [][]float64, outputs []float64) *gp.Model {
	n := stage(len(rows))
	fitted := s.chosen(rows[:n], outputs[:n])
	kernel := s.kernel(pick(rows, fitted), pick(outputs, fitted))
	all := s.chosen(rows, outputs)
	return gp.New(kernel, s.features.groups, pick(rows, all), pick(outputs, all))
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

// chosen returns which observations a model uses, by index: all of them up to
// the limit, and beyond it the best half as many, and others evenly spread over
// the rest.
func (s *Search) chosen(rows [][]float64, outputs []float64) []int {
	n := len(rows)
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	if n <= s.config.Limit {
		return order
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case outputs[a] < outputs[b]:
			return -1
		case outputs[a] > outputs[b]:
			return 1
		}
		return 0
	})
	best := s.config.Limit / 2
	rest := slices.Sorted(slices.Values(order[best:]))
	chosen := order[:best:best]
	for i := range s.config.Limit - best {
		chosen = append(chosen, rest[i*len(rest)/(s.config.Limit-best)])
	}
	slices.Sort(chosen)
	return chosen
}

func pick[T any](from []T, indices []int) []T {
	picked := make([]T, len(indices))
	for i, at := range indices {
		picked[i] = from[at]
	}
	return picked
}
