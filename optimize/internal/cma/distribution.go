// SPDX-License-Identifier: Apache-2.0

package cma

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// Distribution is the normal distribution that a strategy adapts.
type Distribution struct {
	mean  []float64
	sigma float64
	grid  Grid

	rates
	separable  bool
	covariance []float64 // C: n×n by rows, or its diagonal if separable
	basis      []float64 // B: eigenvectors of C, n×n by rows; nil if separable
	scales     []float64 // D: roots of the eigenvalues of C
	stretch    []float64 // A: diagonal
	stepPath   []float64 // p_σ
	path       []float64 // p_c
	generation int
	decomposed int // generation in which B and D were computed
	scratch    []float64
}

// NewDistribution returns the distribution that a descent begins with. Its
// covariance is σ²I. size is the number of points of a generation, at least 2.
// A separable distribution has a diagonal covariance, forever.
func NewDistribution(mean []float64, sigma float64, size int, separable bool, grid Grid) *Distribution {
	n := len(mean)
	d := &Distribution{
		mean: slices.Clone(mean), sigma: sigma, grid: grid,
		rates: newRates(n, size, separable), separable: separable,
		scales: ones(n), stretch: ones(n), stepPath: make([]float64, n), path: make([]float64, n),
		scratch: make([]float64, n),
	}
	if separable {
		d.covariance = ones(n)
		return d
	}
	d.covariance, d.basis = identity(n), identity(n)
	return d
}

// Shape gives the distribution the covariance σ²C, C being n×n by rows. Of a
// separable distribution it is the diagonal.
func (d *Distribution) Shape(c []float64) {
	n := len(d.mean)
	if d.separable {
		for i := range n {
			d.covariance[i] = c[i*n+i]
		}
		d.decompose()
		return
	}
	d.covariance = slices.Clone(c)
	d.factor()
}

func (d *Distribution) clone() *Distribution {
	c := *d
	for _, v := range []*[]float64{&c.mean, &c.covariance, &c.basis, &c.scales, &c.stretch, &c.stepPath, &c.path} {
		*v = slices.Clone(*v)
	}
	c.scratch = make([]float64, len(d.mean))
	return &c
}

// Mean returns the mean, which belongs to the distribution.
func (d *Distribution) Mean() []float64 { return d.mean }

// Sigma returns the step size.
func (d *Distribution) Sigma() float64 { return d.sigma }

// Size returns the number of points of a generation.
func (d *Distribution) Size() int { return len(d.weights) }

// Deviation returns the standard deviation of a coordinate.
func (d *Distribution) Deviation(i int) float64 {
	return d.sigma * d.stretch[i] * math.Sqrt(d.variance(i))
}

func (d *Distribution) variance(i int) float64 {
	if d.separable {
		return d.covariance[i]
	}
	return d.covariance[i*len(d.mean)+i]
}

// Draw returns the point m + σ·A·B·D·z: one drawn from the distribution, if z
// are independent standard normal numbers.
func (d *Distribution) Draw(z []float64) []float64 {
	n := len(d.mean)
	x := make([]float64, n)
	if d.separable {
		for i := range x {
			x[i] = d.mean[i] + d.sigma*d.stretch[i]*d.scales[i]*z[i]
		}
		return x
	}
	for k := range n {
		d.scratch[k] = d.scales[k] * z[k]
	}
	for i := range x {
		x[i] = d.mean[i] + d.sigma*d.stretch[i]*dot(d.basis[i*n:i*n+n], d.scratch)
	}
	return x
}

// whiten returns C^(-1/2)·y.
func (d *Distribution) whiten(y []float64) []float64 {
	n := len(y)
	white := make([]float64, n)
	if d.separable {
		for i := range y {
			white[i] = y[i] / d.scales[i]
		}
		return white
	}
	clear(d.scratch)
	for i := range n {
		axpy(d.scratch, y[i], d.basis[i*n:i*n+n])
	}
	for k := range n {
		d.scratch[k] /= d.scales[k]
	}
	for i := range n {
		white[i] = dot(d.basis[i*n:i*n+n], d.scratch)
	}
	return white
}

// Member is a point of a generation.
type Member struct {
	X []float64
	// Foreign is set for a point that was not drawn from the distribution.
	Foreign bool
}

// Update ends a generation: it adapts the distribution to Size points, from
// the best to the worst. Foreign points are brought to a likely distance from
// the mean, as N. Hansen, "Injecting external solutions into CMA-ES",
// arXiv:1110.4181, tells.
func (d *Distribution) Update(members []Member) {
	n := len(d.mean)
	steps := make([][]float64, len(members)) // y = A⁻¹(x − m)/σ
	reach := math.Sqrt(float64(n)) + 2*float64(n)/float64(n+2)
	shift := make([]float64, n) // ⟨y⟩_w
	for k, member := range members {
		y := make([]float64, n)
		for i := range y {
			y[i] = (member.X[i] - d.mean[i]) / (d.sigma * d.stretch[i])
		}
		if member.Foreign {
			if length := norm(d.whiten(y)); length > reach {
				scale(y, reach/length)
			}
		}
		steps[k] = y
		if k < d.parents {
			axpy(shift, d.weights[k], y)
		}
	}
	d.generation++
	for i := range d.mean {
		d.mean[i] += d.sigma * d.stretch[i] * shift[i]
	}
	stalled := d.updatePaths(shift)
	d.updateCovariance(steps, stalled)
	d.sigma *= math.Exp(math.Min(1, d.rates.stepPath/d.damping*(norm(d.stepPath)/d.length-1)))
	d.sigma = math.Min(math.Max(d.sigma, 1e-150), 1e150)
	d.decompose()
	d.keepMargin()
}

// updatePaths advances both evolution paths and returns 1 − h_σ: 1 while the
// step path is so long that the other has to wait, and 0 otherwise.
func (d *Distribution) updatePaths(shift []float64) float64 {
	cs, cc := d.rates.stepPath, d.rates.path
	scale(d.stepPath, 1-cs)
	axpy(d.stepPath, math.Sqrt(cs*(2-cs)*d.mass), d.whiten(shift))
	long := norm(d.stepPath) / math.Sqrt(1-math.Pow(1-cs, 2*float64(d.generation)))
	scale(d.path, 1-cc)
	if long >= (1.4+2/float64(len(d.mean)+1))*d.length {
		return 1
	}
	axpy(d.path, math.Sqrt(cc*(2-cc)*d.mass), shift)
	return 0
}

// updateCovariance is equation 47 of the tutorial.
func (d *Distribution) updateCovariance(steps [][]float64, stalled float64) {
	n := len(d.mean)
	keep := 1 + d.rankOne*stalled*d.rates.path*(2-d.rates.path) - d.rankOne
	weights := make([]float64, len(steps))
	for k, w := range d.weights {
		keep -= d.rankParents * w
		if w < 0 {
			length := norm(d.whiten(steps[k]))
			w *= float64(n) / (length*length + 1e-8)
		}
		weights[k] = d.rankParents * w
	}
	scale(d.covariance, keep)
	d.addOuter(d.rankOne, d.path)
	for k, y := range steps {
		d.addOuter(weights[k], y)
	}
}

// addOuter adds w·y·yᵀ to the covariance.
func (d *Distribution) addOuter(w float64, y []float64) {
	n := len(y)
	for i := range n {
		if d.separable {
			d.covariance[i] += w * y[i] * y[i]
			continue
		}
		axpy(d.covariance[i*n:i*n+n], w*y[i], y)
	}
}

// decompose computes B and D anew when C has changed enough to be worth its
// cost, after 1/(5n(c_1 + c_μ)) generations.
func (d *Distribution) decompose() {
	n := len(d.mean)
	if d.separable {
		for i, v := range d.covariance {
			d.covariance[i] = math.Min(math.Max(v, 1e-28), 1e28)
			d.scales[i] = math.Sqrt(d.covariance[i])
		}
		return
	}
	if float64(d.generation-d.decomposed) < 1/(5*float64(n)*(d.rankOne+d.rankParents)) {
		return
	}
	d.decomposed = d.generation
	d.factor()
}

// factor computes B and D. Eigenvalues are kept within a condition of 10¹⁴ and
// above 0.
func (d *Distribution) factor() {
	n := len(d.mean)
	var eigen mat.EigenSym
	if !eigen.Factorize(mat.NewSymDense(n, d.covariance), true) {
		d.covariance, d.basis, d.scales = identity(n), identity(n), ones(n)
		return
	}
	values := eigen.Values(nil)
	least := math.Max(values[n-1]*1e-14, 1e-28)
	for i, v := range values {
		d.scales[i] = math.Sqrt(math.Max(v, least))
	}
	basis := mat.NewDense(n, n, d.basis)
	eigen.VectorsTo(basis)
	if values[0] < least {
		d.recompose()
	}
}

// recompose sets C to B·D²·Bᵀ.
func (d *Distribution) recompose() {
	n := len(d.mean)
	clear(d.covariance)
	column := make([]float64, n)
	for k, s := range d.scales {
		for i := range n {
			column[i] = d.basis[i*n+k]
		}
		d.addOuter(s*s, column)
	}
}
