// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateUpdate decides whether old may become e, both with defaults set. Only
// the three trial counts may change, and what says how long it goes on. An experiment that has ended goes on when
// its maxTrialCount is raised, if its resume policy allows it. That e is valid
// in itself is for Validate to say.
//
// A spec that does not change is never refused, so that rules that came after
// an experiment cannot keep it from being labelled or deleted.
func (e *Experiment) ValidateUpdate(old *Experiment) field.ErrorList {
	if equality.Semantic.DeepEqual(e.Spec, old.Spec) {
		return nil
	}
	var errs field.ErrorList
	spec := field.NewPath("spec")
	ended := old.IsCompleted()
	if ended && !old.IsRestartable() {
		errs = append(errs, field.Forbidden(spec, fmt.Sprintf(
			"the experiment has ended; only one that reached its maxTrialCount with resumePolicy %s or %s can go on; create a new experiment",
			LongRunning, FromVolume)))
	}
	most := e.Spec.MaxTrialCount
	if most != nil && *most <= old.Status.Trials && (ended || !equalCount(most, old.Spec.MaxTrialCount)) {
		errs = append(errs, field.Invalid(spec.Child("maxTrialCount"), *most,
			fmt.Sprintf("must be greater than the %d trials that were already made", old.Status.Trials)))
	}
	frozen := e.Spec
	frozen.ParallelTrialCount = old.Spec.ParallelTrialCount
	frozen.MaxTrialCount = old.Spec.MaxTrialCount
	frozen.MaxFailedTrialCount = old.Spec.MaxFailedTrialCount
	frozen.Suspend, frozen.SuspendPolicy = old.Spec.Suspend, old.Spec.SuspendPolicy
	frozen.TimeLimitSeconds, frozen.StopTrialsAtEnd = old.Spec.TimeLimitSeconds, old.Spec.StopTrialsAtEnd
	if !equality.Semantic.DeepEqual(frozen, old.Spec) {
		errs = append(errs, field.Forbidden(spec,
			"only parallelTrialCount, maxTrialCount, maxFailedTrialCount, suspend, suspendPolicy, timeLimitSeconds and stopTrialsAtEnd may change; create a new experiment for anything else"))
	}
	return errs
}

func equalCount(a, b *int32) bool {
	return a == b || a != nil && b != nil && *a == *b
}
