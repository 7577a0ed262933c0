// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// example returns inputs that fill the cube evenly, and a smooth function of
// them.
func example(n, features int) (inputs [][]float64, outputs []float64) {
	for i := range n {
		x := make([]float64, features)
		y := 0.0
		for f := range x {
			_, x[f] = math.Modf(float64(i+1) * math.Sqrt([]float64{2, 3, 5, 7, 11, 13, 17, 19, 23, 29}[f]))
			y += math.Sin(3*x[f]) * float64(f+1)
		}
		inputs, outputs = append(inputs, x), append(outputs, y)
	}
	return inputs, outputs
}

// TestClosedForm compares with two and three observations worked out by hand:
// for k = covariance of the two and v = variance with noise, the inverse of
// [v k; k v] is [v −k; −k v]/(v² − k²).
func TestClosedForm(t *testing.T) {
	t.Parallel()
	k := Kernel{Lengths: []float64{0.5}, Scale: 2, Noise: 0.1}
	m := New(k, []int{0}, [][]float64{{0}, {0.5}}, []float64{1, -1})
	r := func(d float64) float64 { // Matérn 5/2 with variance 2 and length 0.5
		a := math.Sqrt(5) * d / 0.5
		return 2 * (1 + a + a*a/3) * math.Exp(-a)
	}
	v, c := 2.1, r(0.5)
	a, b := r(0.2), r(0.3) // at 0.2
	det := v*v - c*c
	wantMean := (a*(v*1-c*-1) + b*(-c*1+v*-1)) / det
	wantVariance := 2 - (a*(v*a-c*b)+b*(-c*a+v*b))/det
	mean, variance := m.Predict([]float64{0.2})
	if math.Abs(mean-wantMean) > 1e-12 || math.Abs(variance-wantVariance) > 1e-12 {
		t.Errorf("at 0.2: %v, %v: want %v, %v", mean, variance, wantMean, wantVariance)
	}
	if got := m.Mean([]float64{0.2}); math.Abs(got-wantMean) > 1e-12 {
		t.Errorf("mean at 0.2: %v: want %v", got, wantMean)
	}
}

// TestQuadratic checks that the quadratic part alone finds a quadratic function
// from a few values.
func TestQuadratic(t *testing.T) {
	t.Parallel()
	f := func(x []float64) float64 { return 1 - 2*x[0] + 3*x[1] + 4*x[0]*x[1] - 5*x[1]*x[1] }
	inputs, _ := example(9, 2)
	var outputs []float64
	for _, x := range inputs {
		outputs = append(outputs, f(x))
	}
	m := New(Kernel{Lengths: []float64{1}, Scale: 1e-12, Trend: 100, Noise: 1e-12}, []int{0, 0}, inputs, outputs)
	for _, x := range [][]float64{{0.1, 0.9}, {2, -1}} {
		if got := m.Mean(x); math.Abs(got-f(x)) > 1e-4 {
			t.Errorf("at %v: %v, want %v", x, got, f(x))
		}
	}
}

// TestGiven checks that adding observations one by one is the same as having
// them at once.
func TestGiven(t *testing.T) {
	t.Parallel()
	inputs, outputs := example(12, 3)
	k := Kernel{Lengths: []float64{0.4, 1, 2}, Scale: 1.5, Trend: 0.2, Noise: 1e-4}
	groups := []int{0, 1, 2}
	m := New(k, groups, inputs[:4], outputs[:4])
	for i := 4; i < len(inputs); i++ {
		m = m.Given(inputs[i], outputs[i])
	}
	all := New(k, groups, inputs, outputs)
	for _, x := range [][]float64{{0, 0, 0}, {0.5, 0.1, 0.9}} {
		mean, variance := m.Predict(x)
		wantMean, wantVariance := all.Predict(x)
		if math.Abs(mean-wantMean) > 1e-9 || math.Abs(variance-wantVariance) > 1e-9 {
			t.Errorf("at %v: %v, %v: want %v, %v", x, mean, variance, wantMean, wantVariance)
		}
	}
}

func TestSmoothed(t *testing.T) {
	t.Parallel()
	inputs, outputs := example(12, 3)
	m := New(Kernel{Lengths: []float64{0.4, 1, 2}, Scale: 1.5, Trend: 0.2, Noise: 0.1}, []int{0, 1, 2}, inputs, outputs)
	for i, got := range m.Smoothed() {
		if want := m.Mean(inputs[i]); math.Abs(got-want) > 1e-9 {
			t.Errorf("observation %d: %v, want the mean there, %v", i, got, want)
		}
	}
}

// difference differentiates f numerically.
func difference(f func([]float64) float64, x []float64) []float64 {
	gradient := make([]float64, len(x))
	const h = 1e-5
	for i := range x {
		at := append([]float64(nil), x...)
		at[i] += h
		up := f(at)
		at[i] -= 2 * h
		gradient[i] = (up - f(at)) / (2 * h)
	}
	return gradient
}

var near = cmpopts.EquateApprox(1e-5, 1e-6)

func TestPredictGradient(t *testing.T) {
	t.Parallel()
	inputs, outputs := example(15, 4)
	for name, trend := range map[string]float64{"Matern": 0, "Trend": 0.3} {
		m := New(Kernel{Lengths: []float64{0.4, 1, 2}, Scale: 1.5, Trend: trend, Noise: 1e-2}, []int{0, 1, 2, 1}, inputs, outputs)
		x := []float64{0.15, 0.45, 0.8, 0.6}
		meanGradient, varianceGradient := make([]float64, 4), make([]float64, 4)
		mean, variance := m.PredictGradient(x, meanGradient, varianceGradient)
		wantMean, wantVariance := m.Predict(x)
		if mean != wantMean || variance != wantVariance {
			t.Errorf("%s: %v, %v: want those of Predict, %v, %v", name, mean, variance, wantMean, wantVariance)
		}
		want := difference(func(x []float64) float64 { mean, _ := m.Predict(x); return mean }, x)
		if diff := cmp.Diff(want, meanGradient, near); diff != "" {
			t.Errorf("%s: gradient of mean: -want, +got:\n%s", name, diff)
		}
		want = difference(func(x []float64) float64 { _, variance := m.Predict(x); return variance }, x)
		if diff := cmp.Diff(want, varianceGradient, near); diff != "" {
			t.Errorf("%s: gradient of variance: -want, +got:\n%s", name, diff)
		}
	}
}

func TestLikelihoodGradient(t *testing.T) {
	t.Parallel()
	inputs, outputs := example(15, 4)
	groups := []int{0, 1, 2, 1}
	for name, deviation := range map[string]float64{"Matern": 0, "Trend": 2} {
		prior := DefaultPrior(3)
		prior.Trend.Deviation = deviation
		l := newLikelihood(prior, groups, inputs, outputs)
		at := []float64{-0.5, 0.3, 1, 0.4, -1.3, -3}
		gradient := make([]float64, len(at))
		l.at(at, gradient)
		want := difference(func(x []float64) float64 { return l.at(x, make([]float64, len(x))) }, at)
		if diff := cmp.Diff(want, gradient, near); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", name, diff)
		}
	}
}

// TestFit checks that the kernel found is better than its neighbors, that it
// sees which input matters, and how much noise there is.
func TestFit(t *testing.T) {
	t.Parallel()
	inputs, _ := example(60, 2)
	var outputs []float64
	for i, x := range inputs {
		noise := []float64{-0.1, 0.1, 0.1, -0.1, 0}[i%5] // variance 0.008
		outputs = append(outputs, math.Sin(9*x[0])+noise)
	}
	prior := DefaultPrior(2)
	k, value := Fit(prior, prior.Mode(), 100, []int{0, 1}, inputs, outputs)
	if k.Lengths[1] < 5*k.Lengths[0] {
		t.Errorf("lengths %v: want the second much longer, because its input has no effect", k.Lengths)
	}
	if k.Noise < 0.004 || k.Noise > 0.016 {
		t.Errorf("noise %v: want about 0.008", k.Noise)
	}
	l := newLikelihood(prior, []int{0, 1}, inputs, outputs)
	logs := prior.logarithms(k)
	for i := range logs {
		for _, step := range []float64{-0.1, 0.1} {
			at := append([]float64(nil), logs...)
			at[i] += step
			if -l.at(at, make([]float64, len(at))) > value {
				t.Errorf("parameter %d: a step of %v is better than the best", i, step)
			}
		}
	}
}

// TestDegenerate checks that what rounding makes singular still has an answer.
func TestDegenerate(t *testing.T) {
	t.Parallel()
	inputs := [][]float64{{0.5}, {0.5}, {0.5}, {0.1}}
	outputs := []float64{1, 1, 1, 0}
	m := New(Kernel{Lengths: []float64{1}, Scale: 1}, []int{0}, inputs, outputs)
	m = m.Given([]float64{0.5}, 1).Given([]float64{0.5}, 1)
	if mean, variance := m.Predict([]float64{0.5}); math.Abs(mean-1) > 1e-3 || !(variance > 0) || variance > 1e-3 {
		t.Errorf("at an observation: %v, %v: want 1 and nearly 0", mean, variance)
	}
	prior := DefaultPrior(1)
	if k, value := Fit(prior, prior.Mode(), 50, []int{0}, inputs, []float64{0, 0, 0, 0}); math.IsNaN(value) || !(k.Lengths[0] > 0) {
		t.Errorf("of a constant: %+v, %v", k, value)
	}
}

func TestInverse(t *testing.T) {
	t.Parallel()
	inputs, outputs := example(9, 2)
	m := New(Kernel{Lengths: []float64{1}, Scale: 1, Noise: 0.1}, []int{0, 0}, inputs, outputs)
	inverse := m.factor.inverse()
	for j := range 9 {
		e := make([]float64, 9)
		e[j] = 1
		m.factor.forward(e)
		m.factor.backward(e)
		for i := j; i < 9; i++ {
			if math.Abs(inverse[i][j]-e[i]) > 1e-10 {
				t.Errorf("inverse[%d][%d] is %v: want %v", i, j, inverse[i][j], e[i])
			}
		}
	}
}

func BenchmarkLikelihood(b *testing.B) {
	inputs, outputs := example(200, 10)
	groups := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	prior := DefaultPrior(10)
	l := newLikelihood(prior, groups, inputs, outputs)
	logs := prior.logarithms(prior.Mode())
	gradient := make([]float64, len(logs))
	for b.Loop() {
		l.at(logs, gradient)
	}
}

func BenchmarkPredict(b *testing.B) {
	inputs, outputs := example(200, 10)
	m := New(DefaultPrior(10).Mode(), []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, inputs, outputs)
	for b.Loop() {
		m.Predict(inputs[3])
	}
}

func BenchmarkPredictGradient(b *testing.B) {
	inputs, outputs := example(200, 10)
	m := New(DefaultPrior(10).Mode(), []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, inputs, outputs)
	mean, variance := make([]float64, 10), make([]float64, 10)
	for b.Loop() {
		m.PredictGradient(inputs[3], mean, variance)
	}
}
