// SPDX-License-Identifier: Apache-2.0

package problem

import "math"

// ripples is Rastrigin's function.
func ripples(z []float64) float64 {
	return sum(z, func(_ int, v float64) float64 { return 10*(1-math.Cos(2*math.Pi*v)) + v*v })
}

func (s *bbob) rastrigin() func([]float64) float64 {
	return func(x []float64) float64 {
		return ripples(condition(asymmetric(oscillate(minus(x, s.optimum)), 0.2), 10))
	}
}

func (s *bbob) bucheRastrigin() func([]float64) float64 {
	for i := 0; i < s.d; i += 2 {
		s.optimum[i] = math.Abs(s.optimum[i])
	}
	return func(x []float64) float64 {
		z := condition(oscillate(minus(x, s.optimum)), 10)
		for i := 0; i < s.d; i += 2 {
			if z[i] > 0 {
				z[i] *= 10
			}
		}
		return ripples(z)
	}
}

func (s *bbob) rotatedRastrigin() func([]float64) float64 {
	m := s.rqr(10)
	return func(x []float64) float64 {
		return ripples(m.times(asymmetric(oscillate(s.r.times(minus(x, s.optimum))), 0.2)))
	}
}

func (s *bbob) weierstrass() func([]float64) float64 {
	const terms = 12
	m := s.rqr(1.0 / 100)
	wave := func(z float64) (total float64) {
		for k := range terms {
			total += math.Pow(0.5, float64(k)) * math.Cos(2*math.Pi*math.Pow(3, float64(k))*(z+0.5))
		}
		return total
	}
	least := wave(0)
	return func(x []float64) float64 {
		z := m.times(oscillate(s.r.times(minus(x, s.optimum))))
		mean := sum(z, func(_ int, v float64) float64 { return wave(v) }) / float64(s.d)
		return 10 * math.Pow(mean-least, 3)
	}
}

// schaffers is F7 of Schaffer, of the condition 10 or, as function 18, 1000.
func (s *bbob) schaffers() func([]float64) float64 {
	alpha := 10.0
	if s.number == 18 {
		alpha = 1000
	}
	return func(x []float64) float64 {
		z := condition(s.q.times(asymmetric(s.r.times(minus(x, s.optimum)), 0.5)), alpha)
		total := sum(z[1:], func(i int, next float64) float64 {
			square := z[i]*z[i] + next*next
			wave := math.Sin(50 * math.Pow(square, 0.1))
			return math.Pow(square, 0.25) * (1 + wave*wave)
		})
		return math.Pow(total/float64(s.d-1), 2)
	}
}

func (s *bbob) griewankRosenbrock() func([]float64) float64 {
	frame := s.bananaFrame()
	return func(x []float64) float64 {
		z := frame(x)
		total := sum(z[1:], func(i int, _ float64) float64 {
			v := banana(z[i : i+2])
			return v/4000 - math.Cos(v)
		})
		return 10 + 10*total/float64(s.d-1)
	}
}

func (s *bbob) schwefel() func([]float64) float64 {
	const best = 4.2096874637 // of each coordinate, times 100
	signs := bbobUniform(s.d, s.seed)
	for i, u := range signs {
		signs[i] = 1
		if u < 0.5 {
			signs[i] = -1
		}
		s.optimum[i] = signs[i] * best / 2
	}
	return func(x []float64) float64 {
		hat := make([]float64, s.d)
		for i := range hat {
			hat[i] = 2 * signs[i] * x[i]
		}
		z := make([]float64, s.d)
		for i := range z {
			z[i] = hat[i] - best
			if i > 0 {
				z[i] += 0.25 * (hat[i-1] - best)
			}
		}
		penalty, total := 0.0, 0.0
		for _, v := range condition(z, 10) {
			v = 100 * (v + best)
			if over := math.Abs(v) - 500; over > 0 {
				penalty += over * over
			}
			total += v * math.Sin(math.Sqrt(math.Abs(v)))
		}
		return 0.01 * (penalty + 418.9828872724339 - total/float64(s.d))
	}
}

func (s *bbob) katsuura() func([]float64) float64 {
	m := s.rqr(100)
	return func(x []float64) float64 {
		product := 1.0
		for i, z := range m.times(minus(x, s.optimum)) {
			total := 0.0
			for j := 1; j <= 32; j++ {
				power := math.Ldexp(1, j)
				total += math.Abs(power*z-math.Floor(power*z+0.5)) / power
			}
			product *= math.Pow(1+float64(i+1)*total, 10/math.Pow(float64(s.d), 1.2))
		}
		return 10 / float64(s.d*s.d) * (product - 1)
	}
}

// lunacek is the bi-Rastrigin function: two funnels, the wider of which does
// not hold the optimum.
func (s *bbob) lunacek() func([]float64) float64 {
	const near = 2.5
	steep := 1 - 0.5/(math.Sqrt(float64(s.d+20))-4.1)
	far := -math.Sqrt((near*near - 1) / steep)
	for i, v := range bbobNormal(s.d, s.seed) {
		s.optimum[i] = math.Copysign(near/2, v)
	}
	return func(x []float64) float64 {
		hat, centred := make([]float64, s.d), make([]float64, s.d)
		for i := range x {
			hat[i] = math.Copysign(2, s.optimum[i]) * x[i]
			centred[i] = hat[i] - near
		}
		z := s.r.times(condition(s.q.times(centred), 100))
		funnel := func(mu float64) float64 {
			return sum(hat, func(_ int, v float64) float64 { return (v - mu) * (v - mu) })
		}
		waves := sum(z, func(_ int, v float64) float64 { return 1 - math.Cos(2*math.Pi*v) })
		return math.Min(funnel(near), float64(s.d)+steep*funnel(far)) + 10*waves
	}
}
