// SPDX-License-Identifier: Apache-2.0

package optimize

import "diwan.dev/diwan/optimize/internal/bayes"

// surrogate predicts one objective of a search by a Gaussian process.
type surrogate struct {
	space *Space
	model bayes.Surrogate
}

// newSurrogate returns the model of an objective given a history, or false where
// the history has no results.
func newSurrogate(h *History, objective int) (surrogate, bool) {
	d := observed(h)
	if len(d.Observations) == 0 {
		return surrogate{}, false
	}
	search := newBayes(h.space, DefaultGPConfig())
	return surrogate{h.space, search.Surrogate(d, objective)}, true
}

// predict returns mean and deviation of the objective's loss at a point of the
// space, in the unit of the objective; the loss of one to be maximised is its
// negative.
func (s surrogate) predict(p Point) (mean, deviation float64) {
	return s.model.Predict(s.space.Unit(p))
}
