// SPDX-License-Identifier: Apache-2.0

package problem

import "fmt"

// BBOBFunctions is how many functions the family bbob has.
const BBOBFunctions = 24

// BBOB returns a noiseless function of BBOB, f from 1 to [BBOBFunctions], in d
// ≥ 2 dimensions on [-5, 5]^d (Hansen, Finck, Ros and Auger, "Real-parameter
// black-box optimization benchmarking 2009: noiseless functions definitions",
// INRIA RR-6829). Values agree with COCO's for the same instance. Inside the
// box, where searches stay, the penalties of the definitions are 0 and left out.
func BBOB(f, d, instance int) *Problem {
	name := fmt.Sprintf("bbob/f%02d/d%02d/i%d", f, d, instance)
	s := newBBOB(f, d, instance)
	function := s.function()
	return &Problem{
		Name: name, Family: "bbob", Parameters: box(d, -5, 5),
		Optimum: function(s.optimum) + s.offset, Solution: s.optimum,
		Evaluate: exact(func(p Point) float64 { return function(p.At) + s.offset }),
	}
}

// bbob is what decides an instance of a function.
type bbob struct {
	number, d int
	seed      int64
	optimum   []float64 // moved by some functions
	offset    float64
	r, q      matrix // the rotations R and Q of the definitions
}

func newBBOB(f, d, instance int) *bbob {
	seed := int64(f + 10000*instance)
	switch f { // these two share the numbers of another function
	case 4:
		seed = int64(3 + 10000*instance)
	case 18:
		seed = int64(17 + 10000*instance)
	}
	return &bbob{
		number: f, d: d, seed: seed,
		optimum: bbobOptimum(d, seed), offset: bbobOffset(seed),
		r: bbobRotation(d, seed+1000000), q: bbobRotation(d, seed),
	}
}

// rqr returns the matrix R Λ^alpha Q.
func (s *bbob) rqr(alpha float64) matrix {
	m := newMatrix(s.d)
	for i := range m {
		scaled := condition(append([]float64(nil), s.r[i]...), alpha)
		for j := range m {
			for k := range m {
				m[i][j] += scaled[k] * s.q[k][j]
			}
		}
	}
	return m
}

// function returns the function without its offset, and settles the optimum.
func (s *bbob) function() func(x []float64) float64 {
	makers := [BBOBFunctions]func(*bbob) func([]float64) float64{
		(*bbob).sphere, (*bbob).ellipsoid, (*bbob).rastrigin, (*bbob).bucheRastrigin, (*bbob).linearSlope,
		(*bbob).attractiveSector, (*bbob).stepEllipsoid, (*bbob).rosenbrock, (*bbob).rotatedRosenbrock,
		(*bbob).rotatedEllipsoid, (*bbob).discus, (*bbob).bentCigar, (*bbob).sharpRidge, (*bbob).differentPowers,
		(*bbob).rotatedRastrigin, (*bbob).weierstrass, (*bbob).schaffers, (*bbob).schaffers,
		(*bbob).griewankRosenbrock, (*bbob).schwefel, (*bbob).gallagher, (*bbob).gallagher,
		(*bbob).katsuura, (*bbob).lunacek,
	}
	return makers[s.number-1](s)
}
