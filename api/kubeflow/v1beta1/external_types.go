// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ExternalTrials says that trials are run by programs that ask for them, and
// not by an object that is made of a template. Not a field of Katib's.
// +kubebuilder:pruning:PreserveUnknownFields
type ExternalTrials struct {
	// How long a trial stays with the program that took it without a report, in
	// seconds: from 1 to 86400, 60 when empty. Then another may take it.
	LeaseSeconds *int32 `json:"leaseSeconds,omitempty"`

	// How often a trial may be taken before it has failed: from 1 to 1000, 5
	// when empty.
	MaxAttempts *int32 `json:"maxAttempts,omitempty"`
}

// Defaults of ExternalTrials.
const (
	DefaultLeaseSeconds int32 = 60
	DefaultMaxAttempts  int32 = 5
)

// Term is how long a trial stays with a program without a report.
func (e *ExternalTrials) Term() time.Duration {
	seconds := DefaultLeaseSeconds
	if e.LeaseSeconds != nil {
		seconds = *e.LeaseSeconds
	}
	return time.Duration(seconds) * time.Second
}

// Attempts is how often a trial may be taken.
func (e *ExternalTrials) Attempts() int32 {
	if e.MaxAttempts != nil {
		return *e.MaxAttempts
	}
	return DefaultMaxAttempts
}

// TrialLease says which program has a trial, or had it last.
// +kubebuilder:pruning:PreserveUnknownFields
type TrialLease struct {
	// How often the trial was taken.
	Attempt int32 `json:"attempt,omitempty"`

	// Names the lease. Empty where nobody has the trial.
	ID string `json:"id,omitempty"`

	// Who took it, for people.
	Worker string `json:"worker,omitempty"`

	// When it was taken.
	AcquireTime *metav1.MicroTime `json:"acquireTime,omitempty"`

	// When it runs out, unless the program reports.
	ExpireTime *metav1.MicroTime `json:"expireTime,omitempty"`

	// What the program said became of the trial. Empty until it has.
	Outcome LeaseOutcome `json:"outcome,omitempty"`

	// What the program said about it.
	Message string `json:"message,omitempty"`
}

// LeaseOutcome is what a program says became of its trial.
type LeaseOutcome string

// The outcomes.
const (
	LeaseSucceeded LeaseOutcome = "Succeeded"
	LeaseFailed    LeaseOutcome = "Failed"
)
