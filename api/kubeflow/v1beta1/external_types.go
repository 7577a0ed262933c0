// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ExternalTrials specifies that programs ask for trials and run them, instead
// of an object rendered from a template. Not in Katib.
// +kubebuilder:pruning:PreserveUnknownFields
type ExternalTrials struct {
	// How many seconds a program keeps its trial without reporting: from 1 to
	// 86400, default 60. Then another may take it.
	LeaseSeconds *int32 `json:"leaseSeconds,omitempty"`

	// How often a trial may be handed out before it fails: from 1 to 1000,
	// default 5.
	MaxAttempts *int32 `json:"maxAttempts,omitempty"`
}

// Defaults of ExternalTrials.
const (
	DefaultLeaseSeconds int32 = 60
	DefaultMaxAttempts  int32 = 5
)

// Term is how long a program keeps its trial without reporting.
func (e *ExternalTrials) Term() time.Duration {
	seconds := DefaultLeaseSeconds
	if e.LeaseSeconds != nil {
		seconds = *e.LeaseSeconds
	}
	return time.Duration(seconds) * time.Second
}

// Attempts is how often a trial may be handed out.
func (e *ExternalTrials) Attempts() int32 {
	if e.MaxAttempts != nil {
		return *e.MaxAttempts
	}
	return DefaultMaxAttempts
}

// TrialLease says which program has a trial, or had it last.
// +kubebuilder:pruning:PreserveUnknownFields
type TrialLease struct {
	// How often the trial was handed out.
	Attempt int32 `json:"attempt,omitempty"`

	// The lease's name. Empty if no program has the trial.
	ID string `json:"id,omitempty"`

	// Who took it, human-readable.
	Worker string `json:"worker,omitempty"`

	// When it was taken.
	AcquireTime *metav1.MicroTime `json:"acquireTime,omitempty"`

	// When it expires, unless the program reports.
	ExpireTime *metav1.MicroTime `json:"expireTime,omitempty"`

	// The outcome that the program reported. Empty until then.
	Outcome LeaseOutcome `json:"outcome,omitempty"`

	// The message that the program reported with it.
	Message string `json:"message,omitempty"`
}

// LeaseOutcome is the outcome of a trial as reported by its program.
type LeaseOutcome string

// The outcomes.
const (
	LeaseSucceeded LeaseOutcome = "Succeeded"
	LeaseFailed    LeaseOutcome = "Failed"
)
