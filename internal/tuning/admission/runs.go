// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/platform/admission"
	"diwan.dev/diwan/internal/platform/domain"
)

// Runs are the kinds that trials run, as the domains declare them.
type Runs []domain.Kind

// Defaults are those of templates that run an object of a kind.
func (r Runs) Defaults() []v1beta1.RunDefaults {
	var all []v1beta1.RunDefaults
	for _, k := range r {
		if k.Trial != nil {
			all = append(all, v1beta1.RunDefaults{
				Kind: k.GroupVersionKind, SuccessCondition: k.Trial.SuccessCondition, FailureCondition: k.Trial.FailureCondition, PrimaryPodLabels: k.Trial.PrimaryPodLabels,
			})
		}
	}
	return all
}

// warnings names the fields of an experiment's run object that its kind does not
// have, where that is a kind of ours: what is warned of when a trial creates it
// reaches nobody.
func (r Runs) warnings(e *v1beta1.Experiment) []string {
	if e.Spec.TrialTemplate == nil || e.Spec.TrialTemplate.TrialSpec == nil {
		return nil
	}
	run := e.Spec.TrialTemplate.TrialSpec
	object := r.empty(run.GroupVersionKind())
	if object == nil {
		return nil
	}
	text, err := json.Marshal(run.Object)
	if err != nil {
		return nil
	}
	warnings, err := admission.Decode(text, object)
	if err != nil {
		return nil // such as a placeholder for a number
	}
	for i, w := range warnings {
		warnings[i] = "spec.trialTemplate.trialSpec: " + w
	}
	return warnings
}

// empty is an empty object of a kind that trials run, nil if it is none of ours.
func (r Runs) empty(kind schema.GroupVersionKind) any {
	for _, k := range r {
		if k.Trial != nil && k.Object != nil && k.GroupVersionKind == kind {
			return k.Object.DeepCopyObject()
		}
	}
	return nil
}
