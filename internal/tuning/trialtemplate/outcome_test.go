// SPDX-License-Identifier: Apache-2.0

package trialtemplate

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	complete = `status.conditions.#(type=="Complete")#|#(status=="True")#`
	failed   = `status.conditions.#(type=="Failed")#|#(status=="True")#`
)

func TestEvaluate(t *testing.T) {
	t.Parallel()
	cases := []struct {
		reason, run, success, failure string
		want                          Outcome
	}{
		{"without a status it runs", "kind: Job", complete, failed, Outcome{State: Running}},
		{"without a condition it runs", "kind: Job\nstatus: {active: 1}", complete, failed, Outcome{State: Running}},
		{"a condition that does not hold is none", "kind: Job\nstatus: {conditions: [{type: Complete, status: 'False'}]}", complete, failed, Outcome{State: Running}},
		{"a Job completes", "kind: Job\nstatus: {conditions: [{type: SuccessCriteriaMet, status: 'True'}, {type: Complete, status: 'True', reason: Done, message: all well}]}",
			complete, failed, Outcome{Succeeded, "Done", "all well"}},
		{"a Job fails", "kind: Job\nstatus: {conditions: [{type: Failed, status: 'True', reason: BackoffLimitExceeded, message: too often}]}",
			complete, failed, Outcome{Failed, "BackoffLimitExceeded", "too often"}},
		{"failure is asked first", "kind: Job\nstatus: {conditions: [{type: Complete, status: 'True'}, {type: Failed, status: 'True'}]}",
			complete, failed, Outcome{State: Failed}},
		{"one query that finds an object", "kind: Job\nstatus: {conditions: [{type: Complete, status: 'True', reason: R}]}",
			`status.conditions.#(type=="Complete")`, failed, Outcome{Succeeded, "R", ""}},
		{"a workflow is an object with a phase", "kind: Workflow\nstatus: {phase: Succeeded, message: ok}",
			`status.[@this].#(phase=="Succeeded")#`, `status.[@this].#(phase=="Failed")#`, Outcome{Succeeded, "", "ok"}},
		{"a pipeline that failed has not succeeded", "kind: PipelineRun\nstatus: {conditions: [{type: Succeeded, status: 'False', reason: Failed}]}",
			`status.conditions.#(type=="Succeeded")#|#(status=="True")#`, `status.conditions.#(type=="Succeeded")#|#(status=="False")#`, Outcome{Failed, "Failed", ""}},
		{"a text is not a condition", "kind: Job\nstatus: {phase: Succeeded}", "status.phase", failed, Outcome{State: Running}},
		{"an empty array is not a condition", "kind: Job\nstatus: {conditions: []}", "status.conditions", failed, Outcome{State: Running}},
		{"a reason that is not text is none", "kind: Job\nstatus: {conditions: [{reason: 5}]}", "status.conditions", failed, Outcome{State: Succeeded}},
		{"queries may look beside the status", "kind: Job\nspec: {done: [{reason: R}]}", "spec.done", "spec.broken", Outcome{Succeeded, "R", ""}},
		{"an empty query never holds", "kind: Job\nstatus: {}", "", "", Outcome{State: Running}},
	}
	for _, c := range cases {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			run := tree(t, "apiVersion: v1\n"+c.run)
			got, err := Evaluate(run, c.success, c.failure)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("Evaluate (-want +got):\n%s", diff)
			}
			whole, err := run.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(got, EvaluateJSON(whole, c.success, c.failure)); diff != "" {
				t.Errorf("EvaluateJSON of the whole object differs (-Evaluate +EvaluateJSON):\n%s", diff)
			}
		})
	}
}

// FuzzEvaluate holds that no object and query makes evaluation panic.
func FuzzEvaluate(f *testing.F) {
	f.Add([]byte(`{"status":{"conditions":[{"type":"Complete","status":"True"}]}}`), complete, failed)
	f.Add([]byte(`{"status":[1,{"a":null}]}`), `status.#(a%"*")#|@this|0`, `..#.{"x":a,@pretty:{"indent":3}}`)
	f.Fuzz(func(t *testing.T, run []byte, success, failure string) {
		if o := EvaluateJSON(run, success, failure); o.State == "" {
			t.Error("no state")
		}
	})
}
