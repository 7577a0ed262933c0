// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/searchspace"
	"diwan.dev/diwan/internal/tuning/trialtemplate"
	"diwan.dev/diwan/optimize"
)

// TestExamples holds that Katib's examples, whatever they run, get defaults,
// are allowed, and render a trial of the first point of their search.
func TestExamples(t *testing.T) {
	t.Parallel()
	for _, file := range examples(t, "jobs", "other-kinds") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			documents := read(t, file)
			maps := configMaps(t, documents)
			s := server(t, maps)
			object := defaulted(t, s, documents[len(documents)-1])
			if got := message(ask(t, s, PathValidateExperiment, object, "")); got != "" {
				t.Fatal(got)
			}
			e := &v1beta1.Experiment{}
			if err := json.Unmarshal([]byte(object), e); err != nil {
				t.Fatal(err)
			}
			renderFirst(t, e, maps)
		})
	}
}

func renderFirst(t *testing.T, e *v1beta1.Experiment, templates client.Reader) {
	t.Helper()
	space, err := searchspace.Of(&e.Spec)
	if err != nil {
		t.Fatal(err)
	}
	sampler, err := optimize.New(e.Spec.Algorithm.AlgorithmName, searchspace.Settings(e.Spec.Algorithm.AlgorithmSettings), optimize.Problem{Space: space, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	point, err := sampler.Sample(t.Context(), optimize.NewHistory(space, searchspace.Directions(e.Spec.Objective)...))
	if err != nil {
		t.Fatal(err)
	}
	template, err := trialtemplate.Load(t.Context(), e.Namespace, &e.Spec, trialtemplate.Library{Reader: templates})
	if err != nil {
		t.Fatal(err)
	}
	run, err := template.Render("trial-1", e.Namespace, searchspace.Assignments(point))
	if err != nil {
		t.Fatal(err)
	}
	trial := &v1beta1.Trial{}
	trial.Name, trial.Namespace = "trial-1", e.Namespace
	trial.Spec.RunSpec = run
	trial.Spec.MetricsCollector = *e.Spec.MetricsCollectorSpec
	trial.Spec.PrimaryContainerName = e.Spec.TrialTemplate.PrimaryContainerName
	made, err := trialtemplate.RunObject(trial)
	if err != nil {
		t.Fatal(err)
	}
	text, err := made.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "${trial") {
		t.Errorf("a placeholder is left: %s", text)
	}
}

// TestRejectedExamples holds that what Katib refuses is refused, for the same reason.
func TestRejectedExamples(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"invalid-algorithm.yaml":      `spec.algorithm.algorithmName: Invalid value: "invalid-algorithm": unknown algorithm; known: `,
		"simple-pbt.yaml":             `spec.maxFailedTrialCount: Invalid value: 3: must not be greater than spec.maxTrialCount`,
		"tekton-pipeline-run.yaml":    `spec.trialTemplate.trialParameters[0].name: Invalid value: "learningRate": is not used in the template`,
		"trial-configmap-source.yaml": `spec.trialTemplate.trialParameters[1].name: Invalid value: "numberLayers": is not used in the template`,
	}
	for _, file := range examples(t, "rejected") {
		documents := read(t, file)
		s := server(t, configMaps(t, documents))
		got := message(ask(t, s, PathValidateExperiment, defaulted(t, s, documents[len(documents)-1]), ""))
		if w := want[filepath.Base(file)]; w == "" || !strings.Contains(got, w) {
			t.Errorf("%s: the answer is %q, want %q in it", file, got, w)
		}
	}
}

// TestExamplesAreDocumented holds the documented table of Katib's examples to
// the files: what Katib accepts is among those that we do, and nothing is missing.
func TestExamplesAreDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "compatibility.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n| Katib's example |")
	directories := map[string][]string{"accepted": {"jobs", "other-kinds"}, "refused": {"rejected"}}
	count := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 5 || !strings.Contains(cells[3], "`") {
			continue
		}
		count++
		file, verdict := strings.Trim(cells[3], " `"), strings.TrimSpace(cells[2])
		if !slices.Contains(directories[verdict], filepath.Dir(file)) {
			t.Errorf("Katib's verdict of %s is %q, which is not what %s says", cells[1], verdict, file)
		}
		if _, err := os.Stat(filepath.Join("..", "..", "..", "examples", "katib", file+".yaml")); err != nil {
			t.Error(err)
		}
	}
	if count != 35 {
		t.Errorf("%d examples are listed, want Katib's 33 and the two of its end-to-end tests", count)
	}
	for _, file := range examples(t, "jobs", "other-kinds", "rejected") {
		name := filepath.Base(filepath.Dir(file)) + "/" + strings.TrimSuffix(filepath.Base(file), ".yaml")
		if !strings.Contains(table, "`"+name+"`") {
			t.Errorf("%s is not listed", name)
		}
	}
}

func examples(t *testing.T, directories ...string) []string {
	t.Helper()
	var files []string
	for _, d := range directories {
		found, err := filepath.Glob(filepath.Join("..", "..", "..", "examples", "katib", d, "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 {
			t.Fatalf("there are no examples in %s", d)
		}
		files = append(files, found...)
	}
	return files
}

// read returns the YAML documents of a file, the experiment last.
func read(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n---\n")
}
