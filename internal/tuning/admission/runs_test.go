// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMutateWarnsOfTheTemplate names fields that the run object's kind does not have, while somebody is there to read it.
func TestMutateWarnsOfTheTemplate(t *testing.T) {
	t.Parallel()
	const at = "spec.trialTemplate.trialSpec: "
	for _, c := range []struct {
		reason, run string
		want        []string
	}{
		{"a training job", "{apiVersion: kubeflow.org/v1, kind: PyTorchJob, spec: {runPolicys: {}, pytorchReplicaSpecs: {Master: {replica: 1}}}}", []string{
			at + `unknown field "spec.pytorchReplicaSpecs.Master.replica" is ignored; did you mean "replicas"?`,
			at + `unknown field "spec.runPolicys" is ignored; did you mean "runPolicy"?`,
		}},
		{"of the later version", "{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, spec: {foo: 1}}", []string{at + `unknown field "spec.foo" is ignored`}},
		{"a TrainJob", "{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, spec: {trainer: {numNode: 2}}}",
			[]string{at + `unknown field "spec.trainer.numNode" is ignored; did you mean "numNodes"?`}},
		{"nothing is wrong", "{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, spec: {trainer: {numNodes: 2}}}", nil},
		{"a placeholder for a number", `{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, spec: {trainer: {numNodes: "${trialParameters.lr}"}}}`, nil},
		{"a kind of others", "{apiVersion: argoproj.io/v1alpha1, kind: Workflow, spec: {numNode: 2}}", nil},
	} {
		s := server(t, nil)
		head, _, _ := strings.Cut(experiment, "    trialSpec:")
		answer := ask(t, s, PathMutateExperiment, head+"    trialSpec: "+c.run+"\n", "")
		if diff := cmp.Diff(c.want, answer.Warnings); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.reason, diff)
		}
	}
}

// TestExamplesAreNotWarnedOf holds that what Katib's examples have is known.
func TestExamplesAreNotWarnedOf(t *testing.T) {
	t.Parallel()
	for _, file := range examples(t, "jobs", "other-kinds") {
		documents := read(t, file)
		if got := ask(t, server(t, nil), PathMutateExperiment, documents[len(documents)-1], "").Warnings; len(got) > 0 {
			t.Errorf("%s: %q", filepath.Base(file), got)
		}
	}
}
