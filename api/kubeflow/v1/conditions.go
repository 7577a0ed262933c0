// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition returns the condition of a type, or nil.
func (s *JobStatus) Condition(t JobConditionType) *JobCondition {
	if i := slices.IndexFunc(s.Conditions, func(c JobCondition) bool { return c.Type == t }); i >= 0 {
		return &s.Conditions[i]
	}
	return nil
}

// Is reports whether a condition is True.
func (s *JobStatus) Is(t JobConditionType) bool {
	c := s.Condition(t)
	return c != nil && c.Status == corev1.ConditionTrue
}

// IsFinished reports whether the job has succeeded or failed.
func (s *JobStatus) IsFinished() bool { return s.Is(JobSucceeded) || s.Is(JobFailed) }

// Retries is how many failures were retried, in whatever way.
func (s *JobStatus) Retries() int32 {
	n := s.Restarts
	for _, restarts := range s.ContainerRestarts {
		n += restarts
	}
	return n
}

// Set makes a condition the last one, which kubectl's column State shows. One
// with the same status and reason stays where it is. A finished job accepts
// no more conditions; Running and Restarting replace each other; the end of a
// job makes them False.
func (s *JobStatus) Set(now metav1.Time, t JobConditionType, status corev1.ConditionStatus, reason, message string) {
	had := s.Condition(t)
	if s.IsFinished() || had != nil && had.Status == status && had.Reason == reason {
		return
	}
	c := JobCondition{Type: t, Status: status, Reason: reason, Message: message, LastUpdateTime: now, LastTransitionTime: now}
	if had != nil && had.Status == status {
		c.LastTransitionTime = had.LastTransitionTime
	}
	kept := make([]JobCondition, 0, len(s.Conditions)+1)
	for _, other := range s.Conditions {
		switch {
		case other.Type == t, t == JobRunning && other.Type == JobRestarting, t == JobRestarting && other.Type == JobRunning:
			continue
		case (other.Type == JobRunning || other.Type == JobRestarting) && other.Status == corev1.ConditionTrue && (t == JobSucceeded || t == JobFailed):
			other.Status, other.LastUpdateTime, other.LastTransitionTime = corev1.ConditionFalse, now, now
		}
		kept = append(kept, other)
	}
	s.Conditions = append(kept, c)
}
