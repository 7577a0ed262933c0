// SPDX-License-Identifier: Apache-2.0

package stopping

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestExtrapolateIntegral compares the forecast of one shape with the posterior
// computed by summing over a grid of the parameters.
func TestExtrapolateIntegral(t *testing.T) {
	t.Parallel()
	xs, ys := []float64{0, 0.1, 0.2, 0.3}, []float64{1.02, 0.68, 0.5, 0.33}
	const improvement = 0.8
	for _, part := range []int{3, 8} {
		phi, phis := shapes[part], make([]float64, len(xs))
		for i, x := range xs {
			phis[i] = (phi(x) - phi(1)) / (phi(0) - phi(1))
		}
		prior := noisePart * improvement
		mass, mean, below := 0.0, 0.0, 0.0
		const limit = 0.1
		for logNoise := math.Log(0.004); logNoise < math.Log(0.6); logNoise += 0.2 {
			noise := math.Exp(logNoise)
			// Inverse gamma density of the variance, times the size of the cell
			// in it; the normal prior of b has the deviation noise/noisePart.
			base := math.Pow(noise, -2*noiseShape-2) * math.Exp(-noiseShape*prior*prior/(noise*noise)) * noise * noise
			for b := -1.0; b < 4; b += 0.04 {
				for a := -2.0; a < 1.5; a += 0.03 {
					logs := -square(b*noisePart/noise)/2 - float64(len(xs)+1)*logNoise
					for i := range xs {
						logs -= square((ys[i]-a-b*phis[i])/noise) / 2
					}
					p := base * math.Exp(logs)
					mass += p
					mean += p * a
					below += p * math.Erfc((a-limit)/noise/math.Sqrt2) / 2
				}
			}
		}
		f := extrapolate(xs, ys, improvement)[part]
		if got, want := f.Mu, mean/mass; math.Abs(got-want) > 0.005 {
			t.Errorf("shape %d: expected end %v, want %v", part, got, want)
		}
		if got, want := f.CDF(limit), below/mass; math.Abs(got-want) > 0.005 {
			t.Errorf("shape %d: probability below %v is %v, want %v", part, limit, got, want)
		}
	}
}

func square(x float64) float64 { return x * x }

// TestExtrapolateCalibrated checks, on curves of families that are not among
// the shapes, that ends which are said to have a probability of at most a tenth
// come in about that part of cases or fewer, and that half of the ends are below
// the middle.
func TestExtrapolateCalibrated(t *testing.T) {
	t.Parallel()
	numbers := rand.New(rand.NewPCG(1, 2))
	const searches = 2000
	low, middle := 0, 0
	for range searches {
		gain, noise := 0.2+numbers.Float64(), 0.01*numbers.Float64()
		tau, power := math.Exp(-3+3*numbers.Float64()), 0.5+numbers.Float64()
		curve := func(x float64) float64 { // Weibull's or Hill's, in turn
			if power < 1 {
				return gain*math.Exp(-math.Pow(x/tau, power)) + noise*numbers.NormFloat64()
			}
			return gain/(1+math.Pow(x/tau, power)) + noise*numbers.NormFloat64()
		}
		var xs, ys []float64
		for i := range 12 {
			xs, ys = append(xs, float64(i)/40), append(ys, curve(float64(i)/40))
		}
		p := extrapolate(xs, ys, 0.7).below(curve(1))
		if p < 0.1 {
			low++
		}
		if p < 0.5 {
			middle++
		}
	}
	if part := float64(low) / searches; part > 0.13 {
		t.Errorf("ends with a probability below 0.1 came in %.3f of cases", part)
	}
	if part := float64(middle) / searches; part < 0.3 || part > 0.7 {
		t.Errorf("ends in the lower half of the forecast came in %.3f of cases", part)
	}
}
