// SPDX-License-Identifier: Apache-2.0

package v1beta1

import "k8s.io/apimachinery/pkg/util/validation/field"

// validateLife checks limits, retries and suspension.
func (s *ExperimentSpec) validateLife(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch s.SuspendPolicy {
	case "", FinishTrials, SuspendTrials:
	default:
		errs = append(errs, field.NotSupported(path.Child("suspendPolicy"), SuspendPolicyType(shorten(string(s.SuspendPolicy))),
			[]SuspendPolicyType{FinishTrials, SuspendTrials}))
	}
	errs = append(errs, validateTimeLimit(s.TimeLimitSeconds, path)...)
	if t := s.TrialTemplate; t != nil {
		at := path.Child("trialTemplate")
		errs = append(errs, validateTimeLimit(t.TimeLimitSeconds, at)...)
		if t.MaxRetryCount < 0 || t.MaxRetryCount > MaxRetries {
			errs = append(errs, field.Invalid(at.Child("maxRetryCount"), t.MaxRetryCount, "must be from 0 to 1000"))
		}
	}
	return errs
}

// mostSeconds is the maximum of a duration: 292 years.
const mostSeconds = 9_223_372_036

func validateTimeLimit(seconds *int64, path *field.Path) field.ErrorList {
	if seconds == nil || *seconds > 0 && *seconds <= mostSeconds {
		return nil
	}
	return field.ErrorList{field.Invalid(path.Child("timeLimitSeconds"), *seconds, "must be greater than 0 and at most 9223372036; omit it for no limit")}
}
