// SPDX-License-Identifier: Apache-2.0

package trialtemplate

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
)

// Validate decides whether every trial of an experiment of a namespace can be
// rendered, by rendering one with the first value of each parameter. The
// template's frame is checked by v1beta1.Experiment.Validate; faults in it are not
// repeated here. A template in a ConfigMap that the library cannot read is left to
// be checked when it is used. What is in a ConfigMap is never quoted.
func Validate(ctx context.Context, namespace string, spec *v1beta1.ExperimentSpec, library Library) field.ErrorList {
	frame := spec.TrialTemplate
	if frame == nil || (frame.TrialSpec == nil) == (frame.ConfigMap == nil) {
		return nil
	}
	at := field.NewPath("spec", "trialTemplate")
	if frame.ConfigMap != nil {
		if err := library.permits(namespace, frame.ConfigMap.ConfigMapNamespace); err != nil {
			return field.ErrorList{field.Forbidden(at.Child("configMap", "configMapNamespace"), err.Error())}
		}
		if library.Reader == nil {
			return validateReferences(spec, at.Child("trialParameters"))
		}
	}
	template, err := Load(ctx, namespace, spec, library)
	if err != nil {
		return field.ErrorList{field.Invalid(template.source(at), field.OmitValueType{}, err.Error())}
	}
	return template.Validate(spec)
}

// Validate is the part of [Validate] that is about the template of an experiment
// itself.
func (t *Template) Validate(spec *v1beta1.ExperimentSpec) field.ErrorList {
	at := field.NewPath("spec", "trialTemplate")
	source := t.source(at)
	errs := t.validateNames(source, at.Child("trialParameters"))
	errs = append(errs, validateReferences(spec, at.Child("trialParameters"))...)
	errs = append(errs, t.validateMeta(source)...)
	if len(errs) > 0 {
		return errs
	}
	return t.validateRun(spec, at, source)
}

// source is the field that has the template, or leads to it.
func (t *Template) source(at *field.Path) *field.Path {
	if t == nil || t.text != "" {
		return at.Child("configMap")
	}
	return at.Child("trialSpec")
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
			errs = append(errs, field.Invalid(source, t.quote(placeholder(name)), "uses a trial parameter that is not declared in spec.trialTemplate.trialParameters"))
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
				"no trial would use it; add a trial parameter that refers to it to spec.trialTemplate.trialParameters"))
		}
	}
	return errs
}

// validateMeta checks fields that trials set themselves, and required ones.
func (t *Template) validateMeta(source *field.Path) field.ErrorList {
	var errs field.ErrorList
	metadata := source.Child("metadata")
	if name := t.tree.GetName(); name != "" {
		errs = append(errs, field.Forbidden(metadata.Child("name"), "each trial's object is named after the trial; omit it"))
	}
	if namespace := t.tree.GetNamespace(); namespace != "" {
		errs = append(errs, field.Forbidden(metadata.Child("namespace"), "each trial's object is in the experiment's namespace; omit it"))
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
	return t.validateJob(run, spec.TrialTemplate.PrimaryContainerName, at, source)
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

// quote is a part of the template as the bad value of an error, but for one of a
// ConfigMap.
func (t *Template) quote(part any) any {
	if t.text != "" {
		return field.OmitValueType{}
	}
	return part
}

func placeholder(name string) string {
	return placeholderOpen + name + string(placeholderClose)
}
