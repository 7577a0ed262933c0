// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/platform/admission"
	"diwan.dev/diwan/internal/tuning/trialtemplate"
)

func (c Config) mutateExperiment(_ context.Context, req ctrladmission.Request) ctrladmission.Response {
	e := &v1beta1.Experiment{}
	warnings, err := admission.Decode(req.Object.Raw, e)
	if admission.IsWrongType(err) {
		if mended, ok := mendCategorical(req.Object.Raw); ok {
			e = &v1beta1.Experiment{}
			warnings, err = admission.Decode(mended, e)
		}
	}
	if err != nil {
		return admission.Unreadable(err, field.NewPath("spec", "trialTemplate", "trialSpec"))
	}
	e.SetDefaults(c.Runs.Defaults()...)
	return admission.Patched(req.Object.Raw, e).WithWarnings(append(warnings, c.Runs.warnings(e)...)...)
}

func (c Config) validateExperiment(ctx context.Context, req ctrladmission.Request) ctrladmission.Response {
	e := &v1beta1.Experiment{}
	if _, err := admission.Decode(req.Object.Raw, e); err != nil {
		return admission.Unreadable(err, field.NewPath("spec", "trialTemplate", "trialSpec"))
	}
	var errs field.ErrorList
	if len(req.OldObject.Raw) > 0 {
		old := &v1beta1.Experiment{}
		if _, err := admission.Decode(req.OldObject.Raw, old); err != nil {
			return admission.Unreadable(err, field.NewPath("spec", "trialTemplate", "trialSpec"))
		}
		old.SetDefaults(c.Runs.Defaults()...) // which one lacks that was created while no webhook was asked
		if equality.Semantic.DeepEqual(e.Spec, old.Spec) {
			return ctrladmission.Allowed("")
		}
		errs = e.ValidateUpdate(old)
	}
	known, err := c.known(ctx, &e.Spec)
	if err != nil {
		return ctrladmission.Errored(http.StatusInternalServerError, err)
	}
	errs = append(errs, e.Validate(known)...)
	if len(errs) == 0 {
		templates := c.Templates
		if !c.Known {
			templates.Reader = nil
		}
		errs = trialtemplate.Validate(ctx, req.Namespace, &e.Spec, templates)
	}
	return admission.Decide(req, errs)
}

// known are the algorithms that an experiment may name.
func (c Config) known(ctx context.Context, spec *v1beta1.ExperimentSpec) (v1beta1.Algorithms, error) {
	all := true
	if spec.Algorithm != nil {
		_, all = c.Algorithms.Search[spec.Algorithm.AlgorithmName]
	}
	if all && spec.EarlyStopping != nil {
		_, all = c.Algorithms.EarlyStopping[spec.EarlyStopping.AlgorithmName]
	}
	if all || c.More == nil {
		return c.Algorithms, nil
	}
	return c.More(ctx, c.Algorithms)
}

// validateTrial keeps out trials that controllers could not read.
func validateTrial(_ context.Context, req ctrladmission.Request) ctrladmission.Response {
	t := &v1beta1.Trial{}
	if _, err := admission.Decode(req.Object.Raw, t); err != nil {
		return admission.Unreadable(err, field.NewPath("spec", "runSpec"))
	}
	var errs field.ErrorList
	if t.Spec.RunSpec == nil && t.Spec.External == nil {
		errs = append(errs, field.Required(field.NewPath("spec", "runSpec"), "the object that does the trial's work; experiments make trials, so create an Experiment instead"))
	}
	return admission.Decide(req, errs)
}

// validateSuggestion keeps out suggestions that controllers could not read.
func validateSuggestion(_ context.Context, req ctrladmission.Request) ctrladmission.Response {
	if _, err := admission.Decode(req.Object.Raw, &v1beta1.Suggestion{}); err != nil {
		return admission.Unreadable(err, nil)
	}
	return ctrladmission.Allowed("")
}
