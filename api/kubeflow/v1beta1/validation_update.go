// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateUpdate decides whether old may become e, both with defaults set. Only the three trial counts,
// suspension and limits may change. A completed experiment resumes when its maxTrialCount is raised, if its
// resume policy allows it. Validate checks e itself.
//
// An unchanged spec is never rejected, so that newer rules cannot keep an existing experiment from being labeled
// or deleted.
func (e *Experiment) ValidateUpdate(old *Experiment) field.ErrorList {
	if equality.Semantic.DeepEqual(e.Spec, old.Spec) {
		return nil
	}
	var errs field.ErrorList
	spec := field.NewPath("spec")
	ended := old.IsCompleted()
	if ended && !old.IsRestartable() {
		errs = append(errs, field.Forbidden(spec, fmt.Sprintf(
			"the experiment has ended; it can be resumed only after reaching maxTrialCount with resumePolicy %s or %s; create a new experiment",
			LongRunning, FromVolume)))
	}
	most := e.Spec.MaxTrialCount
	if most != nil && *most <= old.Status.Trials && (ended || !equalCount(most, old.Spec.MaxTrialCount)) {
		errs = append(errs, field.Invalid(spec.Child("maxTrialCount"), *most,
			fmt.Sprintf("must be greater than the %d trials that were already created", old.Status.Trials)))
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
