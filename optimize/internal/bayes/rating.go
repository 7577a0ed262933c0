// SPDX-License-Identifier: Apache-2.0

package bayes

import (
	"math"

	"diwan.dev/diwan/optimize/internal/acquisition"
	"diwan.dev/diwan/optimize/internal/gp"
)

// rating is an acquisition function of what some models predict, as a function
// of points. It is for one goroutine.
type rating struct {
	features features
	models   []*gp.Model // of the outcomes that the function takes
	function acquisition.Function

	row                          []float64
	outcomes                     []acquisition.Prediction
	slopes                       []acquisition.Slope
	meanGradients, varianceParts [][]float64
}

func (r *rating) prepare() {
	n := len(r.features.groups)
	r.row = make([]float64, n)
	r.outcomes = make([]acquisition.Prediction, len(r.models))
	r.slopes = make([]acquisition.Slope, len(r.models))
	for range r.models {
		r.meanGradients = append(r.meanGradients, make([]float64, n))
		r.varianceParts = append(r.varianceParts, make([]float64, n))
	}
}

// expect makes the models believe that some points have the outcomes that are
// expected of them.
func (r *rating) expect(points [][]float64) {
	for _, p := range points {
		row := r.features.of(p)
		for i, m := range r.models {
			r.models[i] = m.Given(row, m.Mean(row))
		}
	}
}

// at returns the rating of a point.
func (r *rating) at(u []float64) float64 {
	r.features.write(u, r.row)
	for i, m := range r.models {
		mean, variance := m.Predict(r.row)
		r.outcomes[i] = acquisition.Prediction{Mean: mean, Deviation: math.Sqrt(variance)}
	}
	return r.function(r.outcomes, r.slopes)
}

// climb returns the rating of a point and writes its derivatives by the
// coordinates of some dimensions.
func (r *rating) climb(u []float64, dimensions []int, gradient []float64) float64 {
	r.features.write(u, r.row)
	for i, m := range r.models {
		mean, variance := m.PredictGradient(r.row, r.meanGradients[i], r.varianceParts[i])
		r.outcomes[i] = acquisition.Prediction{Mean: mean, Deviation: math.Sqrt(variance)}
	}
	value := r.function(r.outcomes, r.slopes)
	for k, dimension := range dimensions {
		f := r.features.first[dimension]
		gradient[k] = 0
		for i, slope := range r.slopes {
			gradient[k] += slope.Mean*r.meanGradients[i][f] + slope.Deviation*r.varianceParts[i][f]/(2*r.outcomes[i].Deviation)
		}
	}
	return value
}
