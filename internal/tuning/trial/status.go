// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/platform/reconciling"
	"diwan.dev/diwan/internal/tuning/trialtemplate"
)

// reasonObservationUnreadable is the reason of the condition Running while a
// trial waits for the observation store.
const reasonObservationUnreadable = "ObservationUnreadable"

// verdict is how a trial ended.
type verdict struct {
	condition       v1beta1.ConditionType
	reason, message string
}

// judge returns the verdict on a run object that succeeded or failed. observed
// reports whether the objective metric has a value.
func judge(o trialtemplate.Outcome, observed bool) verdict {
	v := verdict{v1beta1.ConditionSucceeded, v1beta1.ReasonTrialSucceeded, "Trial has succeeded"}
	switch {
	case o.State == trialtemplate.Failed:
		v = verdict{v1beta1.ConditionFailed, v1beta1.ReasonTrialFailed, "Trial has failed"}
	case !observed:
		v = verdict{v1beta1.ConditionMetricsUnavailable, v1beta1.ReasonMetricsUnavailable, "Metrics are not available"}
	}
	if o.Message != "" {
		v.message = fmt.Sprintf("%s. Job message: %s", v.message, o.Message)
	}
	if o.Reason != "" {
		v.reason = fmt.Sprintf("%s. Job reason: %s", v.reason, o.Reason)
	}
	return v
}

// reject is the verdict on a trial whose run object cannot be created.
func reject(format string, args ...any) verdict {
	return verdict{v1beta1.ConditionFailed, v1beta1.ReasonTrialFailed, reconciling.Message("Trial has failed: " + fmt.Sprintf(format, args...))}
}

// begin writes into a status that the run object was created at the time since.
func begin(status *v1beta1.TrialStatus, since, now metav1.Time) {
	if status.StartTime == nil {
		status.StartTime = &since
	}
	see(status, now)
	status.Conditions.Set(now, v1beta1.ConditionRunning, corev1.ConditionTrue, v1beta1.ReasonTrialRunning, "Trial is running")
}

// see writes into a status that the trial was seen.
func see(status *v1beta1.TrialStatus, now metav1.Time) {
	if !status.Conditions.IsTrue(v1beta1.ConditionCreated) {
		status.Conditions.Set(now, v1beta1.ConditionCreated, corev1.ConditionTrue, v1beta1.ReasonTrialCreated, "Trial is created")
	}
}

// finish writes a verdict into a status.
func finish(status *v1beta1.TrialStatus, v verdict, now metav1.Time) {
	status.Conditions.Complete(now, v.condition, v.reason, v.message)
	status.CompletionTime = &now
}
