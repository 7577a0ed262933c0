// SPDX-License-Identifier: Apache-2.0

package problem

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// noises by name: each makes an observation of a value v ≥ 0 above the optimum
// on a function whose values commonly differ by spread.
var noises = map[string]func(numbers *rand.Rand, v, spread float64) float64{
	// Like a metric with a fixed error.
	"additive": func(numbers *rand.Rand, v, spread float64) float64 { return v + 0.05*spread*numbers.NormFloat64() },
	// Like BBOB's moderate Gaussian noise: in proportion to the value.
	"multiplicative": func(numbers *rand.Rand, v, _ float64) float64 { return v * math.Exp(0.3*numbers.NormFloat64()) },
	// Like a training that goes wrong now and then: one value in ten is worse by
	// as much as a Cauchy number. An outlier for good would be every search's
	// best point, whatever it had found.
	"heavy": func(numbers *rand.Rand, v, spread float64) float64 {
		if outlier := math.Abs(numbers.NormFloat64() / numbers.NormFloat64()); numbers.Float64() < 0.1 {
			v += spread * outlier
		}
		return v
	},
}

// noisyFunctions are those of BBOB that get noise: a bowl, a valley, an
// ill-conditioned one, a rugged one and one of steps.
var noisyFunctions = []int{1, 8, 10, 15, 7}

// Noisy returns five functions of BBOB in d dimensions, each under three kinds
// of noise. The instances differ from those of [BBOB] with the same number.
func Noisy(d, instance int) []*Problem {
	var problems []*Problem
	for _, f := range noisyFunctions {
		inner := BBOB(f, d, 500+instance)
		spread := inner.spread()
		for _, kind := range []string{"additive", "multiplicative", "heavy"} {
			observe := noises[kind]
			p := *inner
			p.Name, p.Family = fmt.Sprintf("noisy/f%02d-%s/d%02d/i%d", f, kind, d, instance), "noisy"
			p.Evaluate = func(ctx context.Context, x Point, numbers *rand.Rand) (Value, error) {
				v, err := inner.Evaluate(ctx, x, nil)
				return Value{Observed: inner.Optimum + observe(numbers, v.Actual-inner.Optimum, spread), Actual: v.Actual}, err
			}
			problems = append(problems, &p)
		}
	}
	return problems
}

// spread is the range between the quartiles of the values at 500 random points.
func (p *Problem) spread() float64 {
	numbers := generator(p.Name, 0)
	values := make([]float64, 500)
	for i := range values {
		v, _ := p.Evaluate(context.Background(), p.Random(numbers), numbers)
		values[i] = v.Actual
	}
	slices.Sort(values)
	return values[375] - values[125]
}
