// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPods holds what is shown to what Pods do, whatever the object says.
func TestPods(t *testing.T) {
	t.Parallel()
	const noRoom = "0/1 nodes are available: 1 Insufficient cpu."
	for _, c := range []struct {
		reason string
		unit   Unit
		status Status
		trials []Trial
		pods   []Pod
		// trouble is that of t1, or of x itself.
		trouble string
		want    string
	}{
		{
			"a Job's Pod for which there is no processor waits", Pods,
			Status{Planned: 2, Counts: Counts{Running: 2}}, nil,
			[]Pod{{Name: "a", Unit: "a", State: Running}, {Name: "b", Unit: "b", State: Pending, Why: noRoom}},
			"", "0/2 pods, 1 running, 1 waiting, " + noRoom,
		},
		{
			"a training job counts none that waits", Pods,
			Status{Planned: 2}, nil,
			[]Pod{{Name: "a", Unit: "a", State: Pending}, {Name: "b", Unit: "b", State: Pending, Why: noRoom}},
			"", "0/2 pods, 2 waiting, " + noRoom,
		},
		{
			"a TrainJob counts Jobs, which run when one Pod does", Jobs,
			Status{Counts: Counts{Running: 2}}, nil,
			[]Pod{{Name: "a", Unit: "node", State: Running}, {Name: "b", Unit: "node", State: Pending}, {Name: "c", Unit: "data", State: Pending}},
			"", "0 jobs, 1 running, 1 waiting",
		},
		{
			"a trial whose Pod waits does not run", Trials,
			Status{Planned: 4}, []Trial{{Name: "t1", State: Running}, {Name: "t2", State: Running}},
			[]Pod{{Name: "a", Unit: "t1", State: Pending, Why: noRoom}, {Name: "b", Unit: "t2", State: Running}},
			"", "0/4 trials, 1 running, 1 waiting, " + noRoom,
		},
		{
			"one whose Pod runs does, also if it does not say so yet", Trials,
			Status{Planned: 4}, []Trial{{Name: "t1", State: Pending}},
			[]Pod{{Name: "a", Unit: "t1", State: Running}},
			"", "0/4 trials, 1 running",
		},
		{
			"without Pods, a trial is what it says", Trials,
			Status{Planned: 4}, []Trial{{Name: "t1", State: Running}, {Name: "t2", State: Pending}}, nil,
			"", "0/4 trials, 1 running, 1 waiting",
		},
		{
			"Pods that are gone count no more", Pods,
			Status{Planned: 1, Counts: Counts{Running: 1}}, nil,
			[]Pod{{Name: "a", Unit: "a", State: Pending}, {Name: "a", Unit: "a", State: Pending, Gone: true}},
			"", "0/1 pods, 1 running",
		},
		{
			"a Job whose Pods are refused says why there are none", Pods,
			Status{Planned: 2}, nil, nil,
			"FailedCreate: no service account", "0/2 pods, FailedCreate: no service account",
		},
		{
			"a trial whose Pods are refused does not run", Trials,
			Status{Planned: 4}, []Trial{{Name: "t1", State: Running}}, nil,
			"FailedCreate: no service account", "0/4 trials, 1 waiting, FailedCreate: no service account",
		},
		{
			"until there is one", Trials,
			Status{Planned: 4}, []Trial{{Name: "t1", State: Running}}, []Pod{{Name: "a", Unit: "t1", State: Running}},
			"FailedCreate: no service account", "0/4 trials, 1 running",
		},
		{
			"or it has ended", Trials,
			Status{Planned: 4}, []Trial{{Name: "t1", State: Failed}}, nil,
			"FailedCreate: no service account", "1/4 trials, 1 failed",
		},
		{"a Pod that waits does not run", Itself, Status{Counts: Counts{Pending: 1}}, nil, nil, "", "waiting"},
		{"it may say why", Itself, Status{Counts: Counts{Pending: 1}, Reason: "Unschedulable", Message: noRoom}, nil, nil, "", "waiting: " + noRoom + " (Unschedulable)"},
		{"a Pod that runs", Itself, Status{Counts: Counts{Running: 1}}, nil, nil, "", "running"},
	} {
		w := NewWork(ID{Name: "x"}, c.unit, Objective{}, true, at(0))
		w.SetStatus(c.status, at(0))
		for _, trial := range c.trials {
			w.SetTrial(trial, false, at(0))
		}
		if c.trouble != "" && c.unit == Trials {
			w.SetTrouble("t1", c.trouble)
		} else if c.trouble != "" {
			w.SetTrouble("x", c.trouble)
		}
		for _, pod := range c.pods {
			w.SetPod(pod)
		}
		if diff := cmp.Diff("x: "+c.want+", 0:00 elapsed", Summary(w.View(at(0)), Style{})); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.reason, diff)
		}
	}
}

// TestFailuresOfPods tells why a container failed together with what failed for it.
func TestFailuresOfPods(t *testing.T) {
	t.Parallel()
	const oom = "container main exited with code 137 (OOMKilled)"
	e := NewWork(ID{Kind: "Experiment", Name: "x"}, Trials, Objective{Metric: "loss"}, true, at(0))
	e.SetPod(Pod{Name: "a", Unit: "t1", State: Failed, Failure: oom})
	e.SetPod(Pod{Name: "a", Unit: "t1", Gone: true})
	for _, c := range []struct {
		trial Trial
		want  string
	}{
		{Trial{Name: "t1", State: Failed, Message: "Trial has failed."}, "trial t1 failed: Trial has failed; " + oom},
		{Trial{Name: "t2", State: Failed, Message: "Trial has failed."}, "trial t2 failed: Trial has failed."},
	} {
		if got := Line(e.SetTrial(c.trial, false, at(1))[0], Style{}); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	e = NewWork(ID{Kind: "Experiment", Name: "x"}, Trials, Objective{Metric: "loss"}, true, at(0))
	e.SetPod(Pod{Name: "a", Unit: "t1", State: Failed, Failure: oom})
	if got := Line(e.SetTrial(Trial{Name: "t1", State: Failed, Value: "0.5"}, false, at(1))[0], Style{}); !strings.Contains(got, oom) {
		t.Errorf("a trial that failed with a value: %q", got)
	}
	job := NewWork(ID{Kind: "Job", Namespace: "n", Name: "x"}, Pods, Objective{}, true, at(0))
	job.SetPod(Pod{Name: "a", Unit: "a", State: Failed, Failure: oom})
	status := Status{Condition: ConditionFailed, Reason: "BackoffLimitExceeded", Message: "Job has reached the specified backoff limit"}
	want := "job n/x failed: Job has reached the specified backoff limit; " + oom + " (BackoffLimitExceeded)"
	if got := Line(job.SetStatus(status, at(1))[0], Style{}); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Result(job.View(at(2)), Extra{}, Style{})[0]; !strings.Contains(got, oom) {
		t.Errorf("the result is %q", got)
	}
}

// TestCountsAtTheEnd does not fall behind the lines above it: the object's own counts may.
func TestCountsAtTheEnd(t *testing.T) {
	t.Parallel()
	w := NewWork(ID{Kind: "Experiment"}, Trials, Objective{}, true, at(0))
	w.SetTrial(Trial{Name: "a", State: MetricsUnavailable}, false, at(1))
	w.SetStatus(Status{Condition: ConditionFailed, Counts: Counts{MetricsUnavailable: 1, Pending: 1}}, at(1))
	w.SetTrial(Trial{Name: "b", State: MetricsUnavailable}, false, at(2))
	if diff := cmp.Diff(Counts{MetricsUnavailable: 2}, w.View(at(3)).Counts); diff != "" {
		t.Errorf("two trials ended (-want +got)\n%s", diff)
	}
	w.SetStatus(Status{Condition: ConditionFailed, Counts: Counts{MetricsUnavailable: 3}}, at(4))
	if diff := cmp.Diff(Counts{MetricsUnavailable: 3}, w.View(at(5)).Counts); diff != "" {
		t.Errorf("a third one's news is late (-want +got)\n%s", diff)
	}
}
