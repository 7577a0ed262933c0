// SPDX-License-Identifier: Apache-2.0

package pareto

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// sphere returns n points of the front of the positive unit sphere.
func sphere(n, objectives int) [][]float64 {
	random := rand.New(rand.NewPCG(1, 2))
	points := make([][]float64, n)
	for i := range points {
		points[i] = make([]float64, objectives)
		norm := 0.0
		for k := range points[i] {
			points[i][k] = math.Abs(random.NormFloat64())
			norm += points[i][k] * points[i][k]
		}
		for k := range points[i] {
			points[i][k] /= math.Sqrt(norm)
		}
	}
	return points
}

func ones(n int) []float64 {
	reference := make([]float64, n)
	for k := range reference {
		reference[k] = 1.1
	}
	return reference
}

func BenchmarkHypervolume(b *testing.B) {
	for _, objectives := range []int{2, 3, 4, 5} {
		points := sphere(100, objectives)
		b.Run(fmt.Sprintf("%dobjectives", objectives), func(b *testing.B) {
			for b.Loop() {
				Hypervolume(points, ones(objectives))
			}
		})
	}
}

func BenchmarkFronts(b *testing.B) {
	for _, objectives := range []int{2, 3} {
		random := rand.New(rand.NewPCG(3, 4))
		rows := make([][]float64, 10000)
		for i := range rows {
			rows[i] = make([]float64, objectives)
			for k := range rows[i] {
				rows[i][k] = random.Float64()
			}
		}
		b.Run(fmt.Sprintf("%dobjectives", objectives), func(b *testing.B) {
			for b.Loop() {
				Fronts(rows)
			}
		})
	}
}
