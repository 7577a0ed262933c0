// SPDX-License-Identifier: Apache-2.0

package genetic

import (
	"math"
	"slices"

	"diwan.dev/diwan/optimize/internal/random"
)

// Polynomial moves u, at random by r, toward 1 or 0, and no farther. It is
// polynomial mutation (K. Deb and S. Agrawal, "A niched-penalty approach for
// constraint handling in genetic algorithms", 1999): the larger the index, the
// nearer.
func Polynomial(u, index float64, up bool, r float64) float64 {
	part := 1 - math.Pow(1-r, 1/(index+1))
	if up {
		return u + part*(1-u)
	}
	return u - part*u
}

// OtherCell returns the middle of a random one of count equal parts of the
// unit interval, but not of that which u is in.
func OtherCell(u float64, count uint64, numbers *random.Stream) float64 {
	own := min(uint64(u*float64(count)), count-1)
	other := numbers.Uint64() % (count - 1)
	if other >= own {
		other++
	}
	return (float64(other) + 0.5) / float64(count)
}

// Crossover mixes two parents into one child. A coordinate that is whole comes
// from the other parent with the probability swapping; of any other, with the
// same probability, the child gets one near either by simulated binary crossover
// with a distribution index (K. Deb and R. Agrawal, "Simulated binary crossover
// for continuous search space", 1995).
func Crossover(one, other []float64, whole func(i int) bool, swapping, index float64, numbers *random.Stream) []float64 {
	child := slices.Clone(one)
	for i := range child {
		swap, r, side := numbers.Float() < swapping, numbers.Float(), numbers.Uint64()>>63 == 1
		switch {
		case whole(i):
			if swap {
				child[i] = other[i]
			}
		case swap:
			child[i] = simulatedBinary(one[i], other[i], index, r, side)
		}
	}
	return child
}

// simulatedBinary returns one of the two children of a and b, at random by r.
func simulatedBinary(a, b, index, r float64, side bool) float64 {
	spread := math.Pow(2*r, 1/(index+1))
	if r > 0.5 {
		spread = math.Pow(1/(2*(1-r)), 1/(index+1))
	}
	if side {
		spread = -spread
	}
	return math.Min(1, math.Max(0, (a+b)/2+spread*(a-b)/2))
}
