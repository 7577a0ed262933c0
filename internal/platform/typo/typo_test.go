// SPDX-License-Identifier: Apache-2.0

package typo_test

import (
	"reflect"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"pgregory.net/rapid"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
	"diwan.dev/diwan/api/kubeflow/v1beta1"
	trainer "diwan.dev/diwan/api/trainer/v1alpha1"
	"diwan.dev/diwan/internal/platform/typo"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason, word string
		names        []string
		want         string
	}{
		{"a letter too many", "maxTrialsCount", []string{"maxFailedTrialCount", "maxTrialCount"}, "maxTrialCount"},
		{"a letter too few", "acuracy", []string{"loss", "accuracy"}, "accuracy"},
		{"two letters swapped", "imgae", []string{"image", "name"}, "image"},
		{"another style", "max_trial_count", []string{"maxTrialCount"}, "maxTrialCount"},
		{"another case", "Command", []string{"command"}, "command"},
		{"the nearest of several", "team-bb", []string{"team-abc", "team-b"}, "team-b"},
		{"a word of its own is no typing error", "foo", []string{"bar", "image"}, ""},
		{"of short words any is close to any other", "ab", []string{"a", "b", "ac"}, ""},
		{"nor is a word that is right one", "name", []string{"name"}, ""},
		{"nothing to choose from", "name", nil, ""},
	} {
		if got := typo.Nearest(c.word, c.names); got != c.want {
			t.Errorf("%s: %q is taken for %q, want %q", c.reason, c.word, got, c.want)
		}
	}
}

// TestOneMistake finds a long name again whatever one mistake was made in it.
func TestOneMistake(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z]{8,20}`).Draw(t, "name")
		at := rapid.IntRange(0, len(name)-1).Draw(t, "at")
		letter := rapid.StringMatching(`[a-z]?`).Draw(t, "letter")
		wrong := name[:at] + letter + name[at+1:]
		if wrong == name {
			return
		}
		if got := typo.Nearest(wrong, []string{"~~~~~~~~~~~~~~~~~~~~", name}); got != name {
			t.Fatalf("%q is taken for %q, want %q", wrong, got, name)
		}
	})
}

func TestField(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason string
		object any
		path   string
		want   string
	}{
		{"a field of the spec", v1beta1.Experiment{}, "spec.maxTrialsCount", "maxTrialCount"},
		{"an inlined field", v1beta1.Experiment{}, "metdata", "metadata"},
		{"in a list", &v1beta1.Experiment{}, "spec.parameters[1].feasibleSpaces", "feasibleSpace"},
		{"in a list with keys", batchv1.Job{}, `.spec.template.spec.containers[name="a.b]"].comand`, "command"},
		{"in a map", &v1.PyTorchJob{}, "spec.pytorchReplicaSpecs.Worker.replica", "replicas"},
		{"of an optional object", trainer.TrainJob{}, "spec.trainer.numNode", "numNodes"},
		{"what is like none", batchv1.Job{}, "spec.somethingElse", ""},
		{"below what is unknown", batchv1.Job{}, "spec.foo.command", ""},
		{"in what is no object", batchv1.Job{}, "spec.parallelism.foo", ""},
		{"in what has a form of its own", batchv1.Job{}, "metadata.creationTimestamp.Tim", ""},
	} {
		if got := typo.Field(reflect.TypeOf(c.object), c.path); got != c.want {
			t.Errorf("%s: %s is taken for %q, want %q", c.reason, c.path, got, c.want)
		}
	}
}
