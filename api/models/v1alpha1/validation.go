// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxModelName bounds the name of a Model, so that its versions can be named after it.
const maxModelName = 200

var (
	aliasName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,62}$`)
	reserved  = regexp.MustCompile(`^([Vv][0-9]+|latest)$`)
	uri       = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:[^[:space:]]+$`)
	digested  = regexp.MustCompile(`@sha256:[0-9a-f]{64}$`)
)

// Validate validates a model.
func (m *Model) Validate() field.ErrorList {
	var errs field.ErrorList
	if len(m.Name) > maxModelName {
		errs = append(errs, field.TooLong(field.NewPath("metadata", "name"), m.Name, maxModelName))
	}
	at := field.NewPath("spec", "aliases")
	for _, name := range slices.Sorted(maps.Keys(m.Spec.Aliases)) {
		switch {
		case !aliasName.MatchString(name):
			errs = append(errs, field.Invalid(at, name, "an alias must begin with a letter and have at most 63 letters, digits, dashes and underscores"))
		case reserved.MatchString(name):
			errs = append(errs, field.Invalid(at, name, "an alias must be neither latest nor look like a version, such as v3: these have a meaning already"))
		case m.Spec.Aliases[name] < 1:
			errs = append(errs, field.Invalid(at.Key(name), m.Spec.Aliases[name], "must be the number of a version, 1 or more"))
		}
	}
	return errs
}

// Validate validates a version; old is what it replaces, nil when it is new.
func (v *ModelVersion) Validate(old *ModelVersion) field.ErrorList {
	var errs field.ErrorList
	at := field.NewPath("spec")
	for _, reason := range validation.IsDNS1123Subdomain(v.Spec.Model) {
		errs = append(errs, field.Invalid(at.Child("model"), v.Spec.Model, "must be the name of a Model: "+reason))
	}
	if want := ModelVersionName(v.Spec.Model, v.Spec.Version); v.Name != want && len(errs) == 0 {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), v.Name, "must be the model's name, -v and the version: "+want))
	}
	switch {
	case !uri.MatchString(v.Spec.URI):
		errs = append(errs, field.Invalid(at.Child("uri"), v.Spec.URI, "must be a URI, such as oci://registry.example.com/models/digits@sha256:…"))
	case strings.HasPrefix(v.Spec.URI, "oci://") && !digested.MatchString(v.Spec.URI):
		errs = append(errs, field.Invalid(at.Child("uri"), v.Spec.URI, "must end with a digest, @sha256:…: a tag may mean other files tomorrow"))
	}
	if p := v.Spec.Parent; p != nil && *p >= v.Spec.Version {
		errs = append(errs, field.Invalid(at.Child("parent"), *p, "must be an earlier version"))
	}
	for _, name := range slices.Sorted(maps.Keys(v.Spec.Metrics)) {
		if _, err := strconv.ParseFloat(v.Spec.Metrics[name], 64); err != nil {
			errs = append(errs, field.Invalid(at.Child("metrics").Key(name), v.Spec.Metrics[name], `must be a number in quotes, such as "0.973"`))
		}
	}
	if old != nil {
		errs = append(errs, v.Spec.changes(&old.Spec, at)...)
	}
	return errs
}

// changes are errors for the fields that differ and must not; what old lacks may be added.
func (s *ModelVersionSpec) changes(old *ModelVersionSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, f := range []struct {
		name     string
		now, was any
		set      bool
	}{
		{"model", s.Model, old.Model, true},
		{"version", s.Version, old.Version, true},
		{"uri", s.URI, old.URI, true},
		{"content", s.Content, old.Content, old.Content != nil},
		{"producer", s.Producer, old.Producer, old.Producer != nil},
		{"parent", s.Parent, old.Parent, old.Parent != nil},
		{"code", s.Code, old.Code, old.Code != nil},
		{"data", s.Data, old.Data, len(old.Data) > 0},
		{"parameters", s.Parameters, old.Parameters, len(old.Parameters) > 0},
		{"metrics", s.Metrics, old.Metrics, len(old.Metrics) > 0},
	} {
		if f.set && !equality.Semantic.DeepEqual(f.now, f.was) {
			errs = append(errs, field.Forbidden(at.Child(f.name), "is immutable: create another version"))
		}
	}
	return errs
}
