// SPDX-License-Identifier: Apache-2.0

package node

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// firstBackoff, lastBackoff and calm are kubelet's: the first restart is
	// immediate, the next waits 10 s, each further one twice as long up to 5 min,
	// and a run of 10 min resets the backoff.
	firstBackoff = 10 * time.Second
	lastBackoff  = 5 * time.Minute
	calm         = 10 * time.Minute
)

// restarts reports whether a container that exited with code is restarted: by
// its own rules, its own policy, or the Pod's. An ephemeral one never is.
func restarts(pod *corev1.Pod, c *corev1.Container, code int32) bool {
	if isEphemeral(pod, c) {
		return false
	}
	for _, rule := range c.RestartPolicyRules {
		if e := rule.ExitCodes; e != nil {
			in := slices.Contains(e.Values, code)
			if in == (e.Operator == corev1.ContainerRestartRuleOnExitCodesOpIn) {
				return true // the only actions restart
			}
		}
	}
	policy := pod.Spec.RestartPolicy
	switch {
	case c.RestartPolicy != nil:
		policy = corev1.RestartPolicy(*c.RestartPolicy)
	case policy == corev1.RestartPolicyAlways && isInit(pod, c):
		policy = corev1.RestartPolicyOnFailure // an init container ends with success
	}
	switch policy {
	case corev1.RestartPolicyAlways, "":
		return true
	case corev1.RestartPolicyOnFailure:
		return code != 0
	}
	return false
}

func isInit(pod *corev1.Pod, c *corev1.Container) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(i corev1.Container) bool { return i.Name == c.Name })
}

func isEphemeral(pod *corev1.Pod, c *corev1.Container) bool {
	return slices.ContainsFunc(pod.Spec.EphemeralContainers, func(e corev1.EphemeralContainer) bool { return e.Name == c.Name })
}

// dueTime is the earliest time for the next run.
func dueTime(v *view) time.Time {
	due := v.retry
	if v.ended != nil {
		if t := v.ended.FinishedAt.Add(delayAfter(v)); t.After(due) {
			due = t
		}
	}
	return due
}

// delayAfter is the pause after the last run.
func delayAfter(v *view) time.Duration {
	if v.ended == nil || v.backoff == 0 || ranLong(v.ended) {
		return 0
	}
	delay := firstBackoff
	for range v.backoff - 1 {
		if delay *= 2; delay >= lastBackoff {
			return lastBackoff
		}
	}
	return delay
}

// nextBackoff is the step of a run that follows the last.
func nextBackoff(v *view) int {
	switch {
	case v.ended == nil:
		return v.backoff
	case ranLong(v.ended):
		return 1
	}
	return v.backoff + 1
}

func ranLong(t *corev1.ContainerStateTerminated) bool {
	return t.FinishedAt.Sub(t.StartedAt.Time) >= calm
}
