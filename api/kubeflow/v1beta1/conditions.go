// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConditionType names a condition of an object.
type ConditionType string

// The condition types. Each kind uses the ones that its status documents.
const (
	ConditionCreated            ConditionType = "Created"
	ConditionRunning            ConditionType = "Running"
	ConditionRestarting         ConditionType = "Restarting"
	ConditionSucceeded          ConditionType = "Succeeded"
	ConditionFailed             ConditionType = "Failed"
	ConditionKilled             ConditionType = "Killed"
	ConditionMetricsUnavailable ConditionType = "MetricsUnavailable"
	ConditionEarlyStopped       ConditionType = "EarlyStopped"
	ConditionDeploymentReady    ConditionType = "DeploymentReady"
	// ConditionSuspended is not one of Katib's.
	ConditionSuspended ConditionType = "Suspended"
)

// Condition is an observed condition of an object.
// +kubebuilder:pruning:PreserveUnknownFields
type Condition struct {
	// The type of the condition, for example Running or Succeeded.
	Type ConditionType `json:"type"`

	// The status of the condition: True, False or Unknown.
	Status corev1.ConditionStatus `json:"status"`

	// The reason, as one CamelCase word.
	Reason string `json:"reason,omitempty"`

	// A human-readable explanation.
	Message string `json:"message,omitempty"`

	// When the condition was last updated.
	LastUpdateTime metav1.Time `json:"lastUpdateTime,omitempty"`

	// When the condition's status last changed.
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
}

// Conditions is an object's conditions, each type at most once. The one that
// changed last is last: `kubectl get` and Katib's clients show it as the
// object's state.
type Conditions []Condition

// Get returns the condition of type t, or nil. The result points into cs.
func (cs Conditions) Get(t ConditionType) *Condition {
	for i := range cs {
		if cs[i].Type == t {
			return &cs[i]
		}
	}
	return nil
}

// IsTrue reports whether the condition of type t exists with status True.
func (cs Conditions) IsTrue(t ConditionType) bool {
	c := cs.Get(t)
	return c != nil && c.Status == corev1.ConditionTrue
}

// Last returns the type of the condition that changed last, "" without any.
func (cs Conditions) Last() ConditionType {
	if len(cs) == 0 {
		return ""
	}
	return cs[len(cs)-1].Type
}

// Set records a condition at the time now and reports whether cs changed.
//
// A condition with the same status and reason stays as it is, whatever the
// message, so that writing the same fact again is free. Otherwise it moves to
// the end; lastTransitionTime moves only when the status differs.
func (cs *Conditions) Set(now metav1.Time, t ConditionType, status corev1.ConditionStatus, reason, message string) bool {
	c := Condition{
		Type: t, Status: status, Reason: reason, Message: message,
		LastUpdateTime: now, LastTransitionTime: now,
	}
	if old := cs.Get(t); old != nil {
		if old.Status == status && old.Reason == reason {
			return false
		}
		if old.Status == status {
			c.LastTransitionTime = old.LastTransitionTime
		}
	}
	cs.Remove(t)
	*cs = append(*cs, c)
	return true
}

// Complete records that the object ended in the state t: Running, if present,
// becomes False and keeps its reason and message, and t becomes True. It
// reports whether cs changed.
func (cs *Conditions) Complete(now metav1.Time, t ConditionType, reason, message string) bool {
	stopped := false
	if r := cs.Get(ConditionRunning); r != nil {
		stopped = cs.Set(now, ConditionRunning, corev1.ConditionFalse, r.Reason, r.Message)
	}
	return cs.Set(now, t, corev1.ConditionTrue, reason, message) || stopped
}

// Remove deletes the condition of type t and reports whether it existed.
func (cs *Conditions) Remove(t ConditionType) bool {
	n := len(*cs)
	*cs = slices.DeleteFunc(*cs, func(c Condition) bool { return c.Type == t })
	return len(*cs) != n
}
