// SPDX-License-Identifier: Apache-2.0

package trialtemplate

import (
	"encoding/json"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"diwan.dev/diwan/internal/platform/typo"
)

// validateJob checks what would keep every trial's Job from being created or
// from being observed: fields that a Job does not have, values of a wrong type,
// a restart policy that Jobs refuse, a primary container that is not there.
func (t *Template) validateJob(run *unstructured.Unstructured, primary string, at, source *field.Path) field.ErrorList {
	job, errs := t.decodeJob(run, source)
	if len(errs) > 0 {
		return errs
	}
	pod := source.Child("spec", "template", "spec")
	switch job.Spec.Template.Spec.RestartPolicy {
	case corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure:
	default:
		errs = append(errs, field.Invalid(pod.Child("restartPolicy"), t.quote(job.Spec.Template.Spec.RestartPolicy), "must be Never or OnFailure"))
	}
	containers := job.Spec.Template.Spec.Containers
	if len(containers) == 0 {
		return append(errs, field.Required(pod.Child("containers"), "a trial needs a container for the program"))
	}
	isPrimary := func(c corev1.Container) bool { return c.Name == primary }
	if primary != "" && !slices.ContainsFunc(containers, isPrimary) {
		errs = append(errs, field.Invalid(at.Child("primaryContainerName"), primary, "must be the name of a container in the template"+t.list(containers)))
	}
	return errs
}

// decodeJob decodes strictly: a field that a Job does not have is an error.
func (t *Template) decodeJob(run *unstructured.Unstructured, source *field.Path) (*batchv1.Job, field.ErrorList) {
	invalid := func(err error) *field.Error {
		detail := "must be a batch/v1 Job"
		if t.text == "" {
			detail += ": " + err.Error() + typo.Hint(&batchv1.Job{}, err)
		} else {
			detail += ": kubectl create --dry-run=server -f shows what is wrong with the template"
		}
		return field.Invalid(source, field.OmitValueType{}, detail)
	}
	text, err := json.Marshal(run.Object)
	if err != nil {
		return nil, field.ErrorList{invalid(err)}
	}
	job := &batchv1.Job{}
	strict, err := kjson.UnmarshalStrict(text, job)
	if err != nil {
		return nil, field.ErrorList{invalid(err)}
	}
	var errs field.ErrorList
	for _, err := range strict {
		errs = append(errs, invalid(err))
	}
	return job, errs
}

// list names containers for a message, unless they are from a ConfigMap.
func (t *Template) list(containers []corev1.Container) string {
	if t.text != "" {
		return ""
	}
	names := make([]string, len(containers))
	for i, c := range containers {
		names[i] = c.Name
	}
	return ", which has: " + strings.Join(names, ", ")
}
