// SPDX-License-Identifier: Apache-2.0

package diwan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"diwan.dev/diwan/config/crd"
	"diwan.dev/diwan/internal/diwan"
	"diwan.dev/diwan/internal/platform/domain"
	"diwan.dev/diwan/internal/platform/domain/domaintest"
	"diwan.dev/diwan/internal/training"
	"diwan.dev/diwan/internal/tuning"
	"diwan.dev/diwan/internal/tuning/collector/injection"
	"diwan.dev/diwan/observation/memory"
)

// TestDomains holds each domain to the platform's contract, with all that can be
// switched on.
func TestDomains(t *testing.T) {
	t.Parallel()
	definitions, err := crd.All()
	if err != nil {
		t.Fatal(err)
	}
	store := memory.New()
	t.Cleanup(func() { _ = store.Close() })
	tree := domaintest.Tree{Definitions: definitions, Docs: "../../docs", Examples: "../../examples"}
	for _, d := range diwan.Domains(diwan.Options{
		Tuning:   tuning.Options{Store: store, Collector: &injection.Config{}},
		Training: training.Options{InstallRuntimes: true},
	}) {
		t.Run(d.Name, func(t *testing.T) { domaintest.Run(t, d, tree) })
	}
}

// TestKindsAreApart holds that no two domains have the same kind, or answer at the
// same path.
func TestKindsAreApart(t *testing.T) {
	t.Parallel()
	owners, paths := map[string]string{}, map[string]string{}
	for _, d := range diwan.Domains(diwan.Options{}) {
		for _, k := range d.Kinds {
			if other := owners[k.GroupVersionKind.String()]; other != "" {
				t.Errorf("%s is a kind of %s and of %s", k.GroupVersionKind, other, d.Name)
			}
			owners[k.GroupVersionKind.String()] = d.Name
		}
		for _, w := range d.Webhooks {
			if other := paths[w.Path]; other != "" && other != d.Name {
				t.Errorf("%s is answered by %s and by %s", w.Path, other, d.Name)
			}
			paths[w.Path] = d.Name
		}
	}
}

// TestTrialDefaults holds how trials run each kind where the template says nothing,
// which for Kubeflow's is as in Katib.
func TestTrialDefaults(t *testing.T) {
	t.Parallel()
	const (
		complete  = `status.conditions.#(type=="Complete")#|#(status=="True")#`
		succeeded = `status.conditions.#(type=="Succeeded")#|#(status=="True")#`
	)
	role := func(name string) map[string]string { return map[string]string{"training.kubeflow.org/job-role": name} }
	worker := map[string]string{"training.kubeflow.org/replica-type": "worker", "training.kubeflow.org/replica-index": "0"}
	want := map[string]domain.Trial{
		"batch/v1, Kind=Job":                    {SuccessCondition: complete},
		"jobset.x-k8s.io/v1alpha2, Kind=JobSet": {}, // the template says it, as in Katib
		"kubeflow.org/v1, Kind=TFJob":           {SuccessCondition: succeeded, PrimaryPodLabels: role("master")},
		"kubeflow.org/v1, Kind=PyTorchJob":      {SuccessCondition: succeeded, PrimaryPodLabels: role("master")},
		"kubeflow.org/v1, Kind=XGBoostJob":      {SuccessCondition: succeeded, PrimaryPodLabels: role("master")},
		"kubeflow.org/v1, Kind=MPIJob":          {SuccessCondition: succeeded, PrimaryPodLabels: role("master")},
		"kubeflow.org/v1, Kind=PaddleJob":       {SuccessCondition: succeeded, PrimaryPodLabels: role("master")},
		"kubeflow.org/v1, Kind=JAXJob":          {SuccessCondition: succeeded, PrimaryPodLabels: worker}, // it has no master
		"kubeflow.org/v1, Kind=MXJob":           {SuccessCondition: succeeded, PrimaryPodLabels: worker}, // its master is a server
		"kubeflow.org/v2beta1, Kind=MPIJob":     {SuccessCondition: succeeded, PrimaryPodLabels: role("launcher")},
		"trainer.kubeflow.org/v1alpha1, Kind=TrainJob": {SuccessCondition: complete, PrimaryPodLabels: map[string]string{
			"jobset.sigs.k8s.io/replicatedjob-name": "node", "batch.kubernetes.io/job-completion-index": "0"}},
	}
	for _, k := range diwan.Kinds() {
		if k.Trial == nil {
			continue
		}
		w, known := want[k.GroupVersionKind.String()]
		delete(want, k.GroupVersionKind.String())
		if w.SuccessCondition != "" {
			w.FailureCondition = `status.conditions.#(type=="Failed")#|#(status=="True")#`
		}
		if diff := cmp.Diff(w, *k.Trial); !known || diff != "" {
			t.Errorf("%s: -want +got\n%s", k.GroupVersionKind, diff)
		}
	}
	if len(want) > 0 {
		t.Errorf("trials cannot run %v", want)
	}
}
