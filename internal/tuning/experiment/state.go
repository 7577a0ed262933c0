// SPDX-License-Identifier: Apache-2.0

package experiment

import "diwan.dev/diwan/api/kubeflow/v1beta1"

// state is the one of seven lists that a trial belongs to.
type state int

const (
	pending state = iota
	running
	succeeded
	failed
	killed
	earlyStopped
	metricsUnavailable
	states // how many there are
)

// stateOf follows Katib's order of precedence.
func stateOf(c v1beta1.Conditions) state {
	switch {
	case c.IsTrue(v1beta1.ConditionKilled):
		return killed
	case c.IsTrue(v1beta1.ConditionFailed):
		return failed
	case c.IsTrue(v1beta1.ConditionSucceeded):
		return succeeded
	case c.IsTrue(v1beta1.ConditionEarlyStopped):
		return earlyStopped
	case c.IsTrue(v1beta1.ConditionRunning):
		return running
	case c.IsTrue(v1beta1.ConditionMetricsUnavailable):
		return metricsUnavailable
	}
	return pending
}

// active reports whether a trial in this state holds one of the places that
// parallelTrialCount grants.
func (s state) active() bool { return s == pending || s == running }
