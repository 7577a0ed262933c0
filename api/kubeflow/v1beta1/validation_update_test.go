// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestValidateUpdate(t *testing.T) {
	t.Parallel()
	set := func(field **int32, n int32) { *field = &n }
	// ended returns an experiment that made all its 12 trials.
	ended := func(policy ResumePolicyType, c ConditionType, reason string) func() *Experiment {
		return func() *Experiment {
			e := valid()
			e.Spec.ResumePolicy = policy
			e.Status.Trials = 12
			e.Status.Conditions.Complete(metav1.Now(), c, reason, "")
			return e
		}
	}
	atMax := func(p ResumePolicyType) func() *Experiment {
		return ended(p, ConditionSucceeded, ReasonExperimentMaxTrialsReached)
	}
	raise := func(e *Experiment) { set(&e.Spec.MaxTrialCount, 20) }
	cases := []struct {
		reason string
		old    func() *Experiment
		change func(*Experiment)
		want   string
	}{
		{"nothing changes", valid, func(*Experiment) {}, ""},
		{"labels may change, whatever the spec", atMax(NeverResume), func(e *Experiment) { e.Labels = map[string]string{"a": "b"} }, ""},
		{"the counts may change", valid, func(e *Experiment) {
			set(&e.Spec.ParallelTrialCount, 5)
			set(&e.Spec.MaxTrialCount, 30)
			set(&e.Spec.MaxFailedTrialCount, 0)
		}, ""},
		{"a bound may go", valid, func(e *Experiment) { e.Spec.MaxTrialCount = nil }, ""},
		{"how long it goes on may change", valid, func(e *Experiment) {
			limit := int64(60)
			e.Spec.Suspend, e.Spec.SuspendPolicy, e.Spec.TimeLimitSeconds, e.Spec.StopTrialsAtEnd = true, SuspendTrials, &limit, true
		}, ""},
		{"but not that of a trial", valid, func(e *Experiment) { e.Spec.TrialTemplate.MaxRetryCount = 3 }, "only parallelTrialCount"},
		{"nothing else may change", valid, func(e *Experiment) { e.Spec.Algorithm.AlgorithmName = "grid" }, "only parallelTrialCount, maxTrialCount, maxFailedTrialCount, suspend"},
		{"nor the template", valid, func(e *Experiment) { e.Spec.TrialTemplate.Retain = true }, "only parallelTrialCount"},
		{"nor the resume policy", valid, func(e *Experiment) { e.Spec.ResumePolicy = LongRunning }, "only parallelTrialCount"},
		{"trials that were made stay made", func() *Experiment { e := valid(); e.Status.Trials = 8; return e },
			func(e *Experiment) { set(&e.Spec.MaxTrialCount, 8) }, "greater than the 8 trials"},
		{"the others go on with all trials made", func() *Experiment { e := valid(); e.Status.Trials = 12; return e },
			func(e *Experiment) { set(&e.Spec.ParallelTrialCount, 1) }, ""},
		{"an ended experiment stays ended", atMax(NeverResume), raise, "the experiment has ended"},
		{"LongRunning goes on", atMax(LongRunning), raise, ""},
		{"FromVolume goes on", atMax(FromVolume), raise, ""},
		{"it goes on only with more trials", atMax(LongRunning), func(e *Experiment) { set(&e.Spec.ParallelTrialCount, 1) }, "greater than the 12 trials"},
		{"a goal that was reached stays so", ended(LongRunning, ConditionSucceeded, ReasonExperimentGoalReached), raise, "the experiment has ended"},
		{"what failed stays failed", ended(LongRunning, ConditionFailed, ReasonExperimentFailed), raise, "the experiment has ended"},
	}
	for _, c := range cases {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			old := c.old()
			e := old.DeepCopy()
			c.change(e)
			got := ""
			if err := e.ValidateUpdate(old).ToAggregate(); err != nil {
				got = err.Error()
			}
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("ValidateUpdate says %q, want %q", got, c.want)
			}
		})
	}
}
