// SPDX-License-Identifier: Apache-2.0

package cma

import "math"

// smoothing is the deviation that is added around each point of a warm start.
const smoothing = 0.1

// WarmStart returns mean, step size and covariance of a search that begins
// where earlier, similar ones were good: at least one of their best points, in
// the unit cube. The distribution is the normal one closest to a mixture of
// normal distributions around these (M. Nomura, S. Watanabe, Y. Akimoto,
// Y. Ozaki and M. Onishi, "Warm starting CMA-ES for hyperparameter
// optimization", 2021, section 4.2).
func WarmStart(best [][]float64) (mean []float64, sigma float64, covariance []float64) {
	n, each := len(best[0]), 1/float64(len(best))
	mean, covariance = make([]float64, n), identity(n)
	scale(covariance, smoothing*smoothing)
	for _, x := range best {
		axpy(mean, each, x)
	}
	step := make([]float64, n)
	for _, x := range best {
		for i := range n {
			step[i] = x[i] - mean[i]
		}
		for i := range n {
			axpy(covariance[i*n:i*n+n], each*step[i], step)
		}
	}
	sigma = math.Exp(logDeterminant(covariance, n) / float64(2*n))
	scale(covariance, 1/(sigma*sigma))
	return mean, sigma, covariance
}
