// SPDX-License-Identifier: Apache-2.0

package trialtemplate

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestMountCheckpoints(t *testing.T) {
	t.Parallel()
	const job = `
apiVersion: batch/v1
kind: Job
spec: {template: {spec: {containers: [{name: side, image: a}, {name: main, image: b, securityContext: {runAsUser: 7}, volumeMounts: [{name: x, mountPath: /x}]}], volumes: [{name: x, emptyDir: {}}]}}}
`
	run := tree(t, job)
	if err := MountCheckpoints(run, "main", Checkpoints{Claim: "e-pbt", Path: "/checkpoints/", Own: "e/two", Parent: "e/one"}); err != nil {
		t.Fatal(err)
	}
	want := tree(t, `
apiVersion: batch/v1
kind: Job
spec:
  template:
    spec:
      initContainers:
      - {name: checkpoint, image: b, securityContext: {runAsUser: 7}, volumeMounts: [{name: suggestion-volume, mountPath: /var/run/diwan/checkpoints}]}
      containers:
      - {name: side, image: a}
      - name: main
        image: b
        securityContext: {runAsUser: 7}
        volumeMounts: [{name: x, mountPath: /x}, {name: suggestion-volume, mountPath: /checkpoints, subPath: e/two}]
      volumes: [{name: x, emptyDir: {}}, {name: suggestion-volume, persistentVolumeClaim: {claimName: e-pbt}}]
`)
	first, _, err := unstructured.NestedSlice(run.Object, "spec", "template", "spec", "initContainers")
	if err != nil {
		t.Fatal(err)
	}
	command := first[0].(map[string]any)["command"]
	delete(first[0].(map[string]any), "command")
	if err := unstructured.SetNestedSlice(run.Object, first, "spec", "template", "spec", "initContainers"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Object, run.Object); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]any{"sh", "-c", begin, "sh", "/var/run/diwan/checkpoints", "e/two", "e/one"}, command); diff != "" {
		t.Errorf("command (-want +got):\n%s", diff)
	}

	other := tree(t, "apiVersion: v1\nkind: Pod\nspec: {containers: [{name: main}]}")
	before := other.DeepCopy()
	if err := MountCheckpoints(other, "main", Checkpoints{}); err != nil || !cmp.Equal(before, other) {
		t.Errorf("an object that is no Job became %v, %v", other, err)
	}
}

// TestBegin runs what the init container does.
func TestBegin(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(trial string) string { return filepath.Join(dir, "e", trial, "sub", "weights") }
	start := func(own, parent string) {
		t.Helper()
		if out, err := exec.Command("sh", "-c", begin, "sh", dir, own, parent).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	learn := func(trial, what string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(file(trial)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file(trial), []byte(what), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	knows := func(trial, what string) {
		t.Helper()
		if got, err := os.ReadFile(file(trial)); err != nil || string(got) != what {
			t.Errorf("trial %s has %q, %v; want %q", trial, got, err, what)
		}
	}
	start("e/one", "")
	learn("one", "1")
	if err := os.MkdirAll(filepath.Join(dir, "e", "two.new", "half"), 0o777); err != nil { // its Pod died before
		t.Fatal(err)
	}
	start("e/two", "e/one")
	knows("two", "1")
	if _, err := os.Stat(filepath.Join(dir, "e", "two", "half")); err == nil {
		t.Error("what a Pod left half made is there")
	}
	learn("two", "2")
	knows("one", "1")
	start("e/two", "e/one") // its Pod is started again
	knows("two", "2")
	start("e/three", "e/gone")
	if _, err := os.Stat(filepath.Join(dir, "e", "three")); err != nil {
		t.Error(err)
	}
}
