// SPDX-License-Identifier: Apache-2.0

package problem

import "math"

// The generator of BBOB 2009, which decides optimum, rotations and offset of
// an instance: Lehmer's with the multiplier 16807, computed by Schrage's
// method and shuffled through 32 registers (Bays and Durham).
const (
	lehmerMultiplier = 16807
	lehmerModulus    = 1<<31 - 1
	lehmerQuotient   = lehmerModulus / lehmerMultiplier
	lehmerRemainder  = lehmerModulus % lehmerMultiplier
)

func lehmer(x int64) int64 {
	q := x / lehmerQuotient
	if x = lehmerMultiplier*(x-q*lehmerQuotient) - lehmerRemainder*q; x < 0 {
		x += lehmerModulus
	}
	return x
}

// bbobUniform returns n numbers greater than 0 and less than 1.
func bbobUniform(n int, seed int64) []float64 {
	x := max(seed, -seed, 1)
	var registers [32]int64
	for i := 39; i >= 0; i-- { // the first eight only warm up
		if x = lehmer(x); i < len(registers) {
			registers[i] = x
		}
	}
	numbers := make([]float64, n)
	last := registers[0]
	for i := range numbers {
		x = lehmer(x)
		slot := last / (lehmerModulus/32 + 2)
		last, registers[slot] = registers[slot], x
		numbers[i] = math.Max(float64(last)/lehmerModulus, 1e-99)
	}
	return numbers
}

// bbobNormal returns n standard normal numbers (Box and Muller).
func bbobNormal(n int, seed int64) []float64 {
	u := bbobUniform(2*n, seed)
	numbers := make([]float64, n)
	for i := range numbers {
		numbers[i] = math.Sqrt(-2*math.Log(u[i])) * math.Cos(2*math.Pi*u[n+i])
		if numbers[i] == 0 {
			numbers[i] = 1e-99
		}
	}
	return numbers
}

// matrix is a square matrix by rows.
type matrix [][]float64

func newMatrix(d int) matrix {
	m := make(matrix, d)
	for i := range m {
		m[i] = make([]float64, d)
	}
	return m
}

// times returns the product of the matrix and a vector.
func (m matrix) times(x []float64) []float64 {
	y := make([]float64, len(m))
	for i, row := range m {
		for j, v := range row {
			y[i] += v * x[j]
		}
	}
	return y
}

// bbobRotation returns a random orthogonal matrix: normal numbers filled in by
// column, whose columns are then made orthonormal one after another.
func bbobRotation(d int, seed int64) matrix {
	numbers := bbobNormal(d*d, seed)
	m := newMatrix(d)
	for i := range d {
		for j := range d {
			m[i][j] = numbers[j*d+i]
		}
	}
	dot := func(a, b int) (sum float64) {
		for k := range d {
			sum += m[k][a] * m[k][b]
		}
		return sum
	}
	for i := range d {
		for j := range i {
			along := dot(i, j)
			for k := range d {
				m[k][i] -= along * m[k][j]
			}
		}
		length := math.Sqrt(dot(i, i))
		for k := range d {
			m[k][i] /= length
		}
	}
	return m
}

// bbobOptimum returns where an instance has its optimum: in [-4, 4], in steps
// of 8e-4, never 0.
func bbobOptimum(d int, seed int64) []float64 {
	x := bbobUniform(d, seed)
	for i := range x {
		if x[i] = 8*math.Floor(1e4*x[i])/1e4 - 4; x[i] == 0 {
			x[i] = -1e-5
		}
	}
	return x
}

// bbobOffset returns the least value of an instance: Cauchy distributed around
// 0 with the scale 100, rounded to a hundredth and at most 1000 from 0.
func bbobOffset(seed int64) float64 {
	ratio := bbobNormal(1, seed)[0] / bbobNormal(1, seed+1)[0]
	return math.Min(1000, math.Max(-1000, math.Floor(100*100*ratio+0.5)/100))
}
