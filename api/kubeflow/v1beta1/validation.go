// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Limits on the size of an experiment. They are far above what any search can
// use, and keep each object created for an experiment below the size that the
// API server can store.
const (
	// MaxNameLength is the maximum length of a label value: trials and Pods have
	// the experiment's name in one.
	MaxNameLength = 63
	// MaxParameters limits the search space, since every dimension is written
	// into each trial.
	MaxParameters = 1000
	// MaxInitialTrials limits the trials that the user requests.
	MaxInitialTrials = 1000
	// MaxObjectives limits the metrics that are optimized at the same time.
	MaxObjectives = 10
	// MaxConstraints limits the constraints between parameters, and those on
	// metrics.
	MaxConstraints = 100
	// MaxSources limits the earlier experiments to learn from.
	MaxSources = 100
	// MaxListLength limits the values of one discrete or categorical parameter.
	MaxListLength = 10000
	// MaxParallelTrials limits the trials that run at the same time.
	MaxParallelTrials = 10000
	// MaxLeaseSeconds and MaxAttempts limit how long a silent program keeps its
	// trial, and how often it is handed out.
	MaxLeaseSeconds, MaxAttempts = 86400, 1000
	// MaxNames limits the metrics, settings and filters of an experiment, each.
	MaxNames = 1000
	// MaxQueryLength limits a success or failure condition, in bytes.
	MaxQueryLength = 4096
	// MaxRetries limits the retries of one trial.
	MaxRetries = 1000
)

// Algorithms are the algorithms that an experiment may name. The zero value
// has none.
//
// +kubebuilder:object:generate=false
type Algorithms struct {
	// Search and EarlyStopping have the known names. The value says whether
	// this version has the algorithm.
	Search, EarlyStopping map[string]bool
	// Check, when not nil, decides whether the search algorithm can work with
	// its settings, the search space and the trial counts. It is called only
	// for an available algorithm and a space in which Validate found no fault.
	// An error that is a *field.Error has its own path.
	Check func(spec *ExperimentSpec) error
	// CheckEarlyStopping, when not nil, decides whether an early-stopping
	// algorithm that is available can work with its settings.
	CheckEarlyStopping func(spec *EarlyStoppingSpec) error
}

// Validate decides whether an experiment with defaults set may be created.
// The content of the trial template is checked by package trialtemplate.
func (e *Experiment) Validate(known Algorithms) field.ErrorList {
	spec := field.NewPath("spec")
	errs := validateName(e.Name, field.NewPath("metadata", "name"))
	errs = append(errs, e.Spec.validateCounts(spec)...)
	errs = append(errs, e.Spec.Objective.validate(spec.Child("objective"))...)
	errs = append(errs, e.Spec.validateAlgorithms(spec, known)...)
	errs = append(errs, e.Spec.ResumePolicy.validate(spec.Child("resumePolicy"))...)
	errs = append(errs, e.Spec.validateLife(spec)...)
	errs = append(errs, e.Spec.validateSpace(spec)...)
	errs = append(errs, e.Spec.validateStart(spec)...)
	errs = append(errs, e.Spec.TrialTemplate.validate(spec.Child("trialTemplate"))...)
	errs = append(errs, e.Spec.MetricsCollectorSpec.validate(spec.Child("metricsCollectorSpec"))...)
	errs = append(errs, e.Spec.validateReports(spec.Child("metricsCollectorSpec", "collector", "kind"))...)
	if len(errs) == 0 && known.Check != nil {
		if err := known.Check(&e.Spec); err != nil {
			located := &field.Error{}
			if !errors.As(err, &located) {
				located = field.Invalid(spec.Child("algorithm"), e.Spec.Algorithm.AlgorithmName, err.Error())
			}
			errs = append(errs, located)
		}
	}
	return errs
}

func validateName(name string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if name == "" || name[0] < 'a' || name[0] > 'z' {
		errs = append(errs, field.Invalid(path, shorten(name), "must start with a lowercase letter, for example my-experiment"))
	}
	if len(name) > MaxNameLength {
		errs = append(errs, field.TooLong(path, "", MaxNameLength))
	}
	return errs
}

func (s *ExperimentSpec) validateCounts(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	invalid := func(name string, value int32, detail string) {
		errs = append(errs, field.Invalid(path.Child(name), value, detail))
	}
	most := s.MaxTrialCount
	if most != nil && *most <= 0 {
		invalid("maxTrialCount", *most, "must be greater than 0; omit it for no limit")
	}
	if n := s.ParallelTrialCount; n != nil {
		switch {
		case *n <= 0:
			invalid("parallelTrialCount", *n, "must be greater than 0")
		case *n > MaxParallelTrials:
			invalid("parallelTrialCount", *n, "must be at most 10000")
		case most != nil && *n > *most:
			invalid("parallelTrialCount", *n, "must not be greater than spec.maxTrialCount")
		}
	}
	if n := s.MaxFailedTrialCount; n != nil {
		switch {
		case *n < 0:
			invalid("maxFailedTrialCount", *n, "must not be less than 0")
		case most != nil && *n > *most:
			invalid("maxFailedTrialCount", *n, "must not be greater than spec.maxTrialCount")
		}
	}
	return errs
}

func (p ResumePolicyType) validate(path *field.Path) field.ErrorList {
	switch p {
	case "", NeverResume, LongRunning, FromVolume:
		return nil
	}
	return field.ErrorList{field.NotSupported(path, ResumePolicyType(shorten(string(p))),
		[]ResumePolicyType{NeverResume, LongRunning, FromVolume})}
}

// shorten cuts a value that is quoted in a message.
func shorten(value string) string {
	const longest = 80 // bytes that fit well on a terminal line
	if len(value) <= longest {
		return value
	}
	return strings.ToValidUTF8(value[:longest], "") + "…"
}
