// SPDX-License-Identifier: Apache-2.0

package cma

import (
	"cmp"
	"math"
	"slices"
)

// terms says which terms a polynomial has beside the constant.
type terms int

const (
	linear terms = iota
	squares
	products
)

// count returns how many coefficients there are in n dimensions.
func (f terms) count(n int) int {
	switch f {
	case linear:
		return n + 1
	case squares:
		return 2*n + 1
	}
	return (n + 1) * (n + 2) / 2
}

// model is a polynomial in (x − centre)/spread. Its coefficients are the
// constant, those of the coordinates, of their squares, and of the products of
// coordinates i and j < i, by i and then j.
type model struct {
	form           terms
	centre, spread []float64
	coefficients   []float64
	merit          merit
}

// features appends the terms of the polynomial at x.
func (m *model) features(row, x []float64) []float64 {
	n := len(x)
	row = append(row, 1)
	for i := range n {
		row = append(row, (x[i]-m.centre[i])/m.spread[i])
	}
	y := row[len(row)-n:]
	if m.form == linear {
		return row
	}
	for _, v := range y {
		row = append(row, v*v)
	}
	if m.form == squares {
		return row
	}
	for i := range n {
		for j := range i {
			row = append(row, y[i]*y[j])
		}
	}
	return row
}

// predict returns the value of the polynomial.
func (m *model) predict(x []float64) float64 {
	var space [mostTerms]float64
	return dot(m.coefficients, m.features(space[:0], x))
}

// fit fits a polynomial by least squares, with weights that fall linearly from
// 20 for the best sample to 1 for the worst. It returns nil where the equations
// have no solution.
func fit(samples []sample, values []float64, form terms) *model {
	n := len(samples[0].x)
	m := &model{form: form}
	m.centre, m.spread = moments(samples)
	order := make([]int, len(samples))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	count := form.count(n)
	gram, right := make([]float64, count*count), make([]float64, count)
	row := make([]float64, 0, count)
	for rank, k := range order {
		weight := 20 - 19*float64(rank)/float64(max(1, len(samples)-1))
		row = m.features(row[:0], samples[k].x)
		for i, v := range row {
			axpy(gram[i*count:i*count+i+1], weight*v, row)
		}
		axpy(right, weight*values[k], row)
	}
	if m.coefficients = solve(gram, right); m.coefficients == nil {
		return nil
	}
	return m
}

// moments returns mean and standard deviation of each coordinate; 1 for a
// deviation of 0.
func moments(samples []sample) (mean, deviation []float64) {
	n, each := len(samples[0].x), 1/float64(len(samples))
	mean, deviation = make([]float64, n), make([]float64, n)
	for _, s := range samples {
		axpy(mean, each, s.x)
	}
	for _, s := range samples {
		for i, v := range s.x {
			deviation[i] += each * (v - mean[i]) * (v - mean[i])
		}
	}
	for i, v := range deviation {
		if deviation[i] = math.Sqrt(v); v == 0 {
			deviation[i] = 1
		}
	}
	return mean, deviation
}

// kendall returns Kendall's rank correlation τ of two sequences.
func kendall(a, b []float64) float64 {
	agree, pairs := 0, 0
	for i := range a {
		for j := range i {
			pairs++
			if (a[i]-a[j])*(b[i]-b[j]) > 0 {
				agree++
			}
		}
	}
	if pairs == 0 {
		return 0
	}
	return 2*float64(agree)/float64(pairs) - 1
}
