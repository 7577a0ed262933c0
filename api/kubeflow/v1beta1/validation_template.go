// SPDX-License-Identifier: Apache-2.0

package v1beta1

import "k8s.io/apimachinery/pkg/util/validation/field"

// validate checks a template's fields. The template itself is checked by
// package trialtemplate, which can read it.
func (t *TrialTemplate) validate(path *field.Path) field.ErrorList {
	if t == nil {
		return field.ErrorList{field.Required(path, "specify what a trial runs: trialSpec, primaryContainerName and trialParameters")}
	}
	if t.External != nil {
		return t.validateExternal(path)
	}
	var errs field.ErrorList
	if t.PrimaryContainerName == "" {
		errs = append(errs, field.Required(path.Child("primaryContainerName"), "name the container whose metrics are collected"))
	}
	errs = append(errs, validateCondition(t.SuccessCondition, path.Child("successCondition"))...)
	errs = append(errs, validateCondition(t.FailureCondition, path.Child("failureCondition"))...)
	errs = append(errs, t.TrialSource.validate(path)...)
	return append(errs, t.validateParameters(path.Child("trialParameters"))...)
}

// validateExternal checks a template whose trials programs run.
func (t *TrialTemplate) validateExternal(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, other := range []struct {
		name string
		set  bool
	}{
		{"retain", t.Retain}, {"trialSpec", t.TrialSpec != nil}, {"configMap", t.ConfigMap != nil},
		{"trialParameters", len(t.TrialParameters) > 0}, {"primaryPodLabels", len(t.PrimaryPodLabels) > 0},
		{"primaryContainerName", t.PrimaryContainerName != ""}, {"successCondition", t.SuccessCondition != ""}, {"failureCondition", t.FailureCondition != ""},
	} {
		if other.set {
			errs = append(errs, field.Forbidden(path.Child(other.name), "with external, programs run the trials; omit it"))
		}
	}
	at := path.Child("external")
	if n := t.External.LeaseSeconds; n != nil && (*n < 1 || *n > MaxLeaseSeconds) {
		errs = append(errs, field.Invalid(at.Child("leaseSeconds"), *n, "must be from 1 to 86400"))
	}
	if n := t.External.MaxAttempts; n != nil && (*n < 1 || *n > MaxAttempts) {
		errs = append(errs, field.Invalid(at.Child("maxAttempts"), *n, "must be from 1 to 1000"))
	}
	return errs
}

// validateReports checks that nothing is to be collected if there are no Pods.
func (s *ExperimentSpec) validateReports(path *field.Path) field.ErrorList {
	if s.TrialTemplate == nil || s.TrialTemplate.External == nil || s.MetricsCollectorSpec == nil || s.MetricsCollectorSpec.Collector == nil {
		return nil
	}
	if kind := s.MetricsCollectorSpec.Collector.Kind; kind != PushCollector && kind != NoneCollector {
		return field.ErrorList{field.NotSupported(path, kind, []CollectorKind{PushCollector, NoneCollector})}
	}
	return nil
}

func validateCondition(query string, path *field.Path) field.ErrorList {
	switch {
	case query == "":
		return field.ErrorList{field.Required(path,
			"only Job, TrainJob and Kubeflow's training jobs in trialSpec have a default; specify a GJSON query on the object")}
	case len(query) > MaxQueryLength:
		return field.ErrorList{field.TooLong(path, "", MaxQueryLength)}
	}
	return nil
}

func (s *TrialSource) validate(path *field.Path) field.ErrorList {
	switch {
	case s.TrialSpec == nil && s.ConfigMap == nil:
		return field.ErrorList{field.Required(path.Child("trialSpec"), "write the template here, or name a ConfigMap in configMap")}
	case s.TrialSpec != nil && s.ConfigMap != nil:
		return field.ErrorList{field.Forbidden(path.Child("configMap"), "must not be set together with trialSpec")}
	case s.TrialSpec != nil:
		return nil
	}
	var errs field.ErrorList
	at := path.Child("configMap")
	for _, f := range []struct{ name, value string }{
		{"configMapName", s.ConfigMap.ConfigMapName},
		{"configMapNamespace", s.ConfigMap.ConfigMapNamespace},
		{"templatePath", s.ConfigMap.TemplatePath},
	} {
		if f.value == "" {
			errs = append(errs, field.Required(at.Child(f.name), "a template in a ConfigMap needs its name, namespace and key"))
		}
	}
	return errs
}

func (t *TrialTemplate) validateParameters(path *field.Path) field.ErrorList {
	switch n := len(t.TrialParameters); {
	case n == 0:
		return field.ErrorList{field.Required(path, "name at least one parameter that the template uses as ${trialParameters.<name>}")}
	case n > 2*MaxParameters:
		return field.ErrorList{field.TooMany(path, n, 2*MaxParameters)}
	}
	var errs field.ErrorList
	names := make(map[string]bool, len(t.TrialParameters))
	references := make(map[string]bool, len(t.TrialParameters))
	for i, p := range t.TrialParameters {
		errs = append(errs, p.validate(path.Index(i))...)
		if p.Name != "" && names[p.Name] {
			errs = append(errs, field.Duplicate(path.Index(i).Child("name"), shorten(p.Name)))
		}
		if p.Reference != "" && references[p.Reference] {
			errs = append(errs, field.Duplicate(path.Index(i).Child("reference"), shorten(p.Reference)))
		}
		names[p.Name], references[p.Reference] = true, true
	}
	return errs
}

func (p *TrialParameterSpec) validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if p.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), "the template uses it as ${trialParameters.<name>}"))
	}
	for _, r := range p.Name {
		if r == '{' || r == '}' {
			errs = append(errs, field.Invalid(path.Child("name"), shorten(p.Name), "must not contain { or }"))
			break
		}
	}
	if p.Reference == "" {
		errs = append(errs, field.Required(path.Child("reference"), "name a parameter of spec.parameters, or a property such as ${trialSpec.Name}"))
	}
	return errs
}
