// SPDX-License-Identifier: Apache-2.0

package problem

import "math"

func (s *bbob) sphere() func([]float64) float64 {
	return func(x []float64) float64 {
		return sum(minus(x, s.optimum), func(_ int, z float64) float64 { return z * z })
	}
}

// weightedSquares is Σ alpha^(i/(d-1)) z².
func weightedSquares(z []float64, alpha float64) float64 {
	return sum(z, func(i int, v float64) float64 { return math.Pow(alpha, part(i, len(z))) * v * v })
}

func (s *bbob) ellipsoid() func([]float64) float64 {
	return func(x []float64) float64 { return weightedSquares(oscillate(minus(x, s.optimum)), 1e6) }
}

func (s *bbob) rotatedEllipsoid() func([]float64) float64 {
	return func(x []float64) float64 {
		return weightedSquares(oscillate(s.r.times(minus(x, s.optimum))), 1e6)
	}
}

// linearSlope has its optimum in the corner nearest to the random optimum.
func (s *bbob) linearSlope() func([]float64) float64 {
	slopes := make([]float64, s.d)
	for i, x := range s.optimum {
		s.optimum[i] = math.Copysign(5, x)
		slopes[i] = math.Copysign(math.Pow(10, part(i, s.d)), x)
	}
	return func(x []float64) float64 {
		return sum(x, func(i int, v float64) float64 { return 5*math.Abs(slopes[i]) - slopes[i]*v })
	}
}

// attractiveSector is steep in the orthant of the optimum's signs.
func (s *bbob) attractiveSector() func([]float64) float64 {
	m := s.rqr(10)
	return func(x []float64) float64 {
		value := sum(m.times(minus(x, s.optimum)), func(i int, z float64) float64 {
			if z*s.optimum[i] > 0 {
				z *= 100
			}
			return z * z
		})
		return math.Pow(oscillated(value), 0.9)
	}
}

// stepEllipsoid is flat but for steps.
func (s *bbob) stepEllipsoid() func([]float64) float64 {
	return func(x []float64) float64 {
		z := condition(s.q.times(minus(x, s.optimum)), 10)
		first := math.Abs(z[0])
		for i, v := range z {
			if math.Abs(v) > 0.5 {
				z[i] = math.Floor(v + 0.5)
			} else {
				z[i] = math.Floor(10*v+0.5) / 10
			}
		}
		return 0.1 * math.Max(first*1e-4, weightedSquares(s.r.times(z), 100))
	}
}

// banana is Rosenbrock's function.
func banana(z []float64) float64 {
	return sum(z[1:], func(i int, next float64) float64 {
		bend, away := z[i]*z[i]-next, z[i]-1
		return 100*bend*bend + away*away
	})
}

// stretch is the scale of the functions built on Rosenbrock's.
func (s *bbob) stretch() float64 { return math.Max(1, math.Sqrt(float64(s.d))/8) }

func (s *bbob) rosenbrock() func([]float64) float64 {
	for i := range s.optimum {
		s.optimum[i] *= 0.75
	}
	return func(x []float64) float64 {
		z := minus(x, s.optimum)
		for i := range z {
			z[i] = s.stretch()*z[i] + 1
		}
		return banana(z)
	}
}

// bananaFrame returns the rotated and stretched coordinates in which
// Rosenbrock's valley lies, and moves the optimum to where they are all 1.
func (s *bbob) bananaFrame() func(x []float64) []float64 {
	for j := range s.optimum {
		s.optimum[j] = 0
		for i := range s.q {
			s.optimum[j] += s.q[i][j] / (2 * s.stretch())
		}
	}
	return func(x []float64) []float64 {
		z := s.q.times(x)
		for i := range z {
			z[i] = s.stretch()*z[i] + 0.5
		}
		return z
	}
}

func (s *bbob) rotatedRosenbrock() func([]float64) float64 {
	frame := s.bananaFrame()
	return func(x []float64) float64 { return banana(frame(x)) }
}

func (s *bbob) discus() func([]float64) float64 {
	return func(x []float64) float64 {
		return sum(oscillate(s.r.times(minus(x, s.optimum))), func(i int, z float64) float64 {
			if i == 0 {
				return 1e6 * z * z
			}
			return z * z
		})
	}
}

func (s *bbob) bentCigar() func([]float64) float64 {
	s.optimum = bbobOptimum(s.d, s.seed+1000000)
	return func(x []float64) float64 {
		z := s.r.times(asymmetric(s.r.times(minus(x, s.optimum)), 0.5))
		return sum(z, func(i int, z float64) float64 {
			if i == 0 {
				return z * z
			}
			return 1e6 * z * z
		})
	}
}

func (s *bbob) sharpRidge() func([]float64) float64 {
	m := s.rqr(10)
	return func(x []float64) float64 {
		z := m.times(minus(x, s.optimum))
		return z[0]*z[0] + 100*math.Sqrt(sum(z[1:], func(_ int, v float64) float64 { return v * v }))
	}
}

func (s *bbob) differentPowers() func([]float64) float64 {
	return func(x []float64) float64 {
		return math.Sqrt(sum(s.r.times(minus(x, s.optimum)), func(i int, z float64) float64 {
			return math.Pow(math.Abs(z), 2+4*part(i, s.d))
		}))
	}
}
