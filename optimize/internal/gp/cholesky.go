// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// triangle is a lower triangular matrix, by rows: row i has i+1 entries.
type triangle [][]float64

// newTriangle returns one of zeros, in one piece of memory.
func newTriangle(n int) triangle {
	entries := make([]float64, n*(n+1)/2)
	t := make(triangle, n)
	for i := range t {
		t[i], entries = entries[:i+1:i+1], entries[i+1:]
	}
	return t
}

// factor replaces the lower half of a symmetric matrix by its Cholesky factor,
// row by row, and reports whether the matrix is positive definite.
func (t triangle) factor() bool {
	for i := range t {
		if !t.factorRow(i) {
			return false
		}
	}
	return true
}

// Factor replaces the lower half of a symmetric matrix, whose row i has i+1
// entries, by its Cholesky factor, and reports whether the matrix is positive
// definite.
func Factor(matrix [][]float64) bool { return triangle(matrix).factor() }

// factorRow does row i, when those above it are done.
func (t triangle) factorRow(i int) bool {
	row := t[i]
	for j := range i {
		row[j] = (row[j] - floats.Dot(row[:j], t[j][:j])) / t[j][j]
	}
	d := row[i] - floats.Dot(row[:i], row[:i])
	if !(d > 0) || math.IsInf(d, 1) {
		return false
	}
	row[i] = math.Sqrt(d)
	return true
}

// forward solves t·x = b in place.
func (t triangle) forward(b []float64) {
	for i, row := range t {
		b[i] = (b[i] - floats.Dot(row[:i], b[:i])) / row[i]
	}
}

// backward solves tᵀ·x = b in place.
func (t triangle) backward(b []float64) {
	for i := len(t) - 1; i >= 0; i-- {
		row := t[i]
		b[i] /= row[i]
		floats.AddScaled(b[:i], -b[i], row[:i])
	}
}

// inverse returns the lower half of (t·tᵀ)⁻¹.
func (t triangle) inverse() triangle {
	n := len(t)
	// columns[j] holds column j of t⁻¹ from its diagonal on, so that products of
	// columns are products of slices.
	columns := make([][]float64, n)
	entries := make([]float64, n*(n+1)/2)
	for j := range columns {
		columns[j], entries = entries[:n-j:n-j], entries[n-j:]
	}
	row := make([]float64, n)
	for i := range n {
		// Row i of t⁻¹ is −(Σ_k t[i][k]·row k of t⁻¹)/t[i][i], and 1/t[i][i].
		for j := range i {
			row[j] = floats.Dot(t[i][j:i], columns[j][:i-j])
		}
		for j := range i {
			columns[j][i-j] = -row[j] / t[i][i]
		}
		columns[i][0] = 1 / t[i][i]
	}
	inverse := newTriangle(n)
	for i := range n {
		for j := range i + 1 {
			inverse[i][j] = floats.Dot(columns[i], columns[j][i-j:])
		}
	}
	return inverse
}

// logDeterminant returns that of t·tᵀ.
func (t triangle) logDeterminant() float64 {
	sum := 0.0
	for i, row := range t {
		sum += 2 * math.Log(row[i])
	}
	return sum
}
