// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestTensorFlowStatus is the training operator's table of how TFJobs end: how
// many replicas of each type run, succeeded and failed. Where its jobs end as
// both Succeeded and Failed, ours do as the chief says.
func TestTensorFlowStatus(t *testing.T) {
	t.Parallel()
	type counts [3]int // active, succeeded, failed
	none := counts{}
	cases := map[string]struct {
		reason            string
		all, retry        bool // AllWorkers; the chief may be retried
		ps, worker, chief counts
		last              bool // worker 0 is the last to succeed
		want              string
	}{
		"ChiefOK":       {reason: "the chief is done", worker: counts{0, 1, 0}, chief: counts{0, 1, 0}, want: "Succeeded"},
		"ChiefRuns":     {reason: "the chief runs", chief: counts{1, 0, 0}, want: "Running"},
		"ChiefFailed":   {reason: "the chief failed", chief: counts{0, 0, 1}, want: "Failed"},
		"WorkerFailed":  {reason: "the only worker failed", worker: counts{0, 0, 1}, want: "Failed"},
		"WorkerOK":      {reason: "the only worker is done", worker: counts{0, 1, 0}, want: "Succeeded"},
		"WorkerRuns":    {reason: "the only worker runs", worker: counts{1, 0, 0}, want: "Running"},
		"NotWorker0":    {reason: "two are done, but not worker 0", ps: counts{2, 0, 0}, worker: counts{2, 2, 0}, last: true, want: "Running"},
		"TwoFailed":     {reason: "two run, two failed", ps: counts{2, 0, 0}, worker: counts{2, 0, 2}, last: true, want: "Failed"},
		"TwoFailedOK":   {reason: "two are done, two failed, among them worker 0", ps: counts{2, 0, 0}, worker: counts{0, 2, 2}, last: true, want: "Failed"},
		"Worker0":       {reason: "worker 0 is done", ps: counts{2, 0, 0}, worker: counts{3, 1, 0}, want: "Succeeded"},
		"All0":          {reason: "worker 0 is not enough for AllWorkers", all: true, worker: counts{3, 1, 0}, want: "Running"},
		"All":           {reason: "all are", all: true, worker: counts{0, 4, 0}, want: "Succeeded"},
		"AllFailed":     {reason: "one of all failed", all: true, worker: counts{2, 1, 1}, want: "Failed"},
		"WorkersFailed": {reason: "workers failed under a chief that runs", ps: counts{2, 0, 0}, worker: counts{0, 0, 4}, chief: counts{1, 0, 0}, want: "Failed"},
		"WorkersOK":     {reason: "workers are done, the chief is not", ps: counts{2, 0, 0}, worker: counts{0, 4, 0}, chief: counts{1, 0, 0}, want: "Running"},
		"PSFailed":      {reason: "a parameter server failed", ps: counts{1, 0, 1}, worker: counts{0, 4, 0}, chief: counts{1, 0, 0}, want: "Failed"},
		"OnlyChief":     {reason: "only the chief failed", ps: counts{2, 0, 0}, worker: counts{0, 4, 0}, chief: counts{0, 0, 1}, want: "Failed"},
		"ChiefDecides":  {reason: "the chief is done, workers failed", ps: counts{2, 0, 0}, worker: counts{0, 0, 4}, chief: counts{0, 1, 0}, want: "Succeeded"},
		"ChiefRetried":  {reason: "all may be retried", retry: true, ps: counts{2, 0, 0}, worker: counts{0, 0, 4}, chief: counts{0, 0, 1}, want: "Restarting"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			policy, success := "Never", ""
			if tc.retry {
				policy = "ExitCode"
			}
			if tc.all {
				success = "successPolicy: AllWorkers,"
			}
			var specs, pods []string
			for kind, c := range map[string]counts{"PS": tc.ps, "Worker": tc.worker, "Chief": tc.chief} {
				if c == none {
					continue
				}
				specs = append(specs, fmt.Sprintf("%s: {replicas: %d, restartPolicy: %s, template: {spec: {containers: [{name: tensorflow, image: i}]}}}", kind, c[0]+c[1]+c[2], policy))
				states := []string{}
				for state, n := range map[string]int{"Succeeded 0": c[1], "Failed 137": c[2], "Running": c[0]} {
					for range n {
						states = append(states, state)
					}
				}
				sortStates(states, tc.last)
				for i, state := range states {
					pods = append(pods, fmt.Sprintf("%s-%d %s", strings.ToLower(kind), i, state))
				}
			}
			f, job := read(t, fmt.Sprintf("{kind: TFJob, spec: {%s tfReplicaSpecs: {%s}}}", success, strings.Join(specs, ", ")))
			var all []*corev1.Pod
			for _, p := range pods {
				all = append(all, podOf(t, f, job, p))
			}
			got := conditions(decide(f, job, have{pods: all}, noon).status)
			if !strings.HasSuffix(got, " "+tc.want) {
				t.Errorf("%s: the conditions are %s, want %s last", tc.reason, got, tc.want)
			}
		})
	}
}

// sortStates puts what succeeded first, or last.
func sortStates(states []string, last bool) {
	order := map[string]int{"Succeeded 0": 0, "Running": 1, "Failed 137": 2}
	if last {
		order = map[string]int{"Failed 137": 0, "Running": 1, "Succeeded 0": 2}
	}
	for i := range states {
		for j := range i {
			if order[states[i]] < order[states[j]] {
				states[i], states[j] = states[j], states[i]
			}
		}
	}
}
