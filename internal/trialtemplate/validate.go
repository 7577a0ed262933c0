// SPDX-License-Identifier: Apache-2.0

package trialtemplate

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
)

// Validate decides whether every trial of an experiment can be rendered, by
// rendering one with the first value of each parameter. The template's frame is
// checked by v1beta1.Experiment.Validate; faults in it are not repeated here.
func Validate(ctx context.Context, spec *v1beta1.ExperimentSpec, configMaps ConfigMaps) field.ErrorList {
	frame := spec.TrialTemplate
	if frame == nil || (frame.TrialSpec == nil) == (frame.ConfigMap == nil) {
		return nil
	}
	at := field.NewPath("spec", "trialTemplate")
	source := at.Child("trialSpec")
	if frame.ConfigMap != nil {
		source = at.Child("configMap")
	}
	template, err := Load(ctx, spec, configMaps)
	if err != nil {
		return field.ErrorList{field.Invalid(source, field.OmitValueType{}, err.Error())}
	}
	errs := template.validateNames(source, at.Child("trialParameters"))
	errs = append(errs, validateReferences(spec, at.Child("trialParameters"))...)
	errs = append(errs, template.validateMeta(source)...)
	if len(errs) > 0 {
		return errs
	}
	return template.validateRun(spec, at, source)
}

// validateNames checks that the template uses the names that are declared, and
// no others.
func (t *Template) validateNames(source, parameters *field.Path) field.ErrorList {
	declared := make(map[string]bool, len(t.parameters))
	for _, p := range t.parameters {
		declared[p.Name] = true
	}
	var errs field.ErrorList
	used := make(map[string]bool)
	for _, name := range namesIn(t) {
		used[name] = true
		if !declared[name] {
			errs = append(errs, field.Invalid(source, placeholder(name), "is used here but not declared in spec.trialTemplate.trialParameters"))
		}
	}
	for i, p := range t.parameters {
		if p.Name != "" && !used[p.Name] {
			errs = append(errs, field.Invalid(parameters.Index(i).Child("name"), p.Name,
				"is not used in the template; write "+placeholder(p.Name)+" there, or remove it here"))
		}
	}
	return errs
}

// validateReferences checks that trial parameters refer to what there is, and
// that each parameter of the search space is referred to. An architecture
// search assigns names that are not in the spec, so nothing is checked for it.
func validateReferences(spec *v1beta1.ExperimentSpec, path *field.Path) field.ErrorList {
	if len(spec.Parameters) == 0 {
		return nil
	}
	referred := make(map[string]bool, len(spec.Parameters)) // false: known, not yet referred to
	for _, p := range spec.Parameters {
		referred[p.Name] = false
	}
	var errs field.ErrorList
	for i, p := range spec.TrialTemplate.TrialParameters {
		if _, ok := propertyOf(p.Reference); ok || p.Reference == "" {
			continue
		}
		if _, known := referred[p.Reference]; !known {
			errs = append(errs, field.Invalid(path.Index(i).Child("reference"), p.Reference,
				"is neither the name of one of spec.parameters nor a property such as ${trialSpec.Name}"))
			continue
		}
		referred[p.Reference] = true
	}
	for i, p := range spec.Parameters {
		if p.Name != "" && !referred[p.Name] {
			errs = append(errs, field.Invalid(field.NewPath("spec", "parameters").Index(i).Child("name"), p.Name,
				"no trial would use it; add a trial parameter that refers to it in spec.trialTemplate.trialParameters"))
		}
	}
	return errs
}

// validateMeta checks what trials set themselves, and what they need.
func (t *Template) validateMeta(source *field.Path) field.ErrorList {
	var errs field.ErrorList
	metadata := source.Child("metadata")
	if name := t.tree.GetName(); name != "" {
		errs = append(errs, field.Forbidden(metadata.Child("name"), "each trial's object has the trial's name; leave it out"))
	}
	if namespace := t.tree.GetNamespace(); namespace != "" {
		errs = append(errs, field.Forbidden(metadata.Child("namespace"), "each trial's object has the experiment's namespace; leave it out"))
	}
	if t.tree.GetAPIVersion() == "" {
		errs = append(errs, field.Required(source.Child("apiVersion"), "for example batch/v1"))
	}
	if t.tree.GetKind() == "" {
		errs = append(errs, field.Required(source.Child("kind"), "for example Job"))
	}
	return errs
}

// validateRun renders a trial and checks what a batch Job must be.
func (t *Template) validateRun(spec *v1beta1.ExperimentSpec, at, source *field.Path) field.ErrorList {
	run, err := t.Render("trial", "namespace", samples(spec))
	if err != nil {
		return field.ErrorList{field.Invalid(at, field.OmitValueType{}, err.Error())}
	}
	if !isBatchJob(run) {
		return nil
	}
	return validateJob(run, spec.TrialTemplate.PrimaryContainerName, at, source)
}

// samples assigns each parameter its first value. An architecture search
// assigns what the trial parameters refer to.
func samples(spec *v1beta1.ExperimentSpec) []v1beta1.ParameterAssignment {
	var out []v1beta1.ParameterAssignment
	for _, p := range spec.Parameters {
		value := p.FeasibleSpace.Min
		if len(p.FeasibleSpace.List) > 0 {
			value = p.FeasibleSpace.List[0]
		}
		out = append(out, v1beta1.ParameterAssignment{Name: p.Name, Value: value})
	}
	if len(spec.Parameters) > 0 {
		return out
	}
	for _, p := range spec.TrialTemplate.TrialParameters {
		if _, ok := propertyOf(p.Reference); !ok {
			out = append(out, v1beta1.ParameterAssignment{Name: p.Reference, Value: "sample"})
		}
	}
	return out
}

func placeholder(name string) string {
	return placeholderOpen + name + string(placeholderClose)
}
