// SPDX-License-Identifier: Apache-2.0

// Package architecture holds an experiment that searches for an architecture. It has no Go code of its own:
// its tests keep the program and the manifest working.
package architecture

import (
	"math"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/searchspace"
)

// genotype is the form of the metric, which darts.yaml filters by.
var genotype = regexp.MustCompile(`(?m)^Best-Genotype=(Genotype\(normal=\[\[\('\w+',[01]\),\('\w+',[01]\)\],\[\('\w+',[012]\),\('\w+',[012]\)\]\],\S+)$`)

// TestOneShot runs the trial of the manifest on a part of the data.
func TestOneShot(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	text, err := os.ReadFile("darts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	e := &v1beta1.Experiment{}
	if err := yaml.UnmarshalStrict(text, e); err != nil {
		t.Fatal(err)
	}
	space, err := searchspace.Of(&e.Spec)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"oneshot.py", "--samples=160"}
	for _, a := range searchspace.Assignments(space.At(0)) {
		args = append(args, "--"+a.Name+"="+a.Value)
	}
	command := exec.CommandContext(t.Context(), python, args...)
	var failure strings.Builder
	command.Stderr = &failure
	output, err := command.Output()
	if err != nil {
		t.Fatalf("oneshot.py: %v\n%s", err, failure.String())
	}
	if !genotype.Match(output) {
		t.Errorf("oneshot.py printed %q, want a genotype as in %s", output, genotype)
	}
	losses := regexp.MustCompile(`loss=(\S+)`).FindAllSubmatch(output, -1)
	if len(losses) != 6 {
		t.Fatalf("oneshot.py printed %q, want 6 epochs", output)
	}
	last, err := strconv.ParseFloat(string(losses[5][1]), 64)
	if err != nil || last > math.Log(10)-0.5 {
		t.Errorf("the last loss is %v, %v: the network does not learn", last, err)
	}
}
