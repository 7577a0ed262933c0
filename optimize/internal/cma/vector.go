// SPDX-License-Identifier: Apache-2.0

package cma

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

func ones(n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = 1
	}
	return v
}

func identity(n int) []float64 {
	m := make([]float64, n*n)
	for i := range n {
		m[i*n+i] = 1
	}
	return m
}

func dot(a, b []float64) float64 {
	var sum float64
	b = b[:len(a)]
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}

func norm(a []float64) float64 { return math.Sqrt(dot(a, a)) }

func scale(a []float64, by float64) {
	for i := range a {
		a[i] *= by
	}
}

// axpy adds w·x to a.
func axpy(a []float64, w float64, x []float64) {
	x = x[:len(a)]
	for i := range a {
		a[i] += w * x[i]
	}
}

// solve returns the x for which a·x = b, or nil where a, of which it needs and
// overwrites the lower triangle, is not positive definite. A ridge of a
// billionth of a's mean diagonal keeps the solution from blowing up.
func solve(a, b []float64) []float64 {
	n := len(b)
	trace := 0.0
	for i := range n {
		trace += a[i*n+i]
	}
	for i := range n {
		a[i*n+i] += 1e-9 * trace / float64(n)
	}
	for i := range n { // Cholesky's decomposition
		row := a[i*n : i*n+i+1]
		for j := range i {
			row[j] = (row[j] - dot(a[j*n:j*n+j], row)) / a[j*n+j]
		}
		pivot := row[i] - dot(row[:i], row)
		if !(pivot > 0) || math.IsInf(pivot, 0) {
			return nil
		}
		row[i] = math.Sqrt(pivot)
		b[i] = (b[i] - dot(row[:i], b)) / row[i]
	}
	for i := n - 1; i >= 0; i-- {
		b[i] /= a[i*n+i]
		axpy(b[:i], -b[i], a[i*n:i*n+i])
	}
	return b
}

// logDeterminant returns the logarithm of the determinant of a positive
// definite matrix.
func logDeterminant(a []float64, n int) float64 {
	var c mat.Cholesky
	if !c.Factorize(mat.NewSymDense(n, append([]float64(nil), a...))) {
		return 0
	}
	return c.LogDet()
}
