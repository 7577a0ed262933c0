// SPDX-License-Identifier: Apache-2.0

package trialtemplate

import (
	"encoding/json"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// validateJob checks what would keep every trial's Job from being created or
// from being observed: fields that a Job does not have, values of a wrong type,
// a restart policy that Jobs refuse, a primary container that is not there.
func validateJob(run *unstructured.Unstructured, primary string, at, source *field.Path) field.ErrorList {
	job, errs := decodeJob(run, source)
	if len(errs) > 0 {
		return errs
	}
	pod := source.Child("spec", "template", "spec")
	switch job.Spec.Template.Spec.RestartPolicy {
	case corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure:
	default:
		errs = append(errs, field.NotSupported(pod.Child("restartPolicy"), job.Spec.Template.Spec.RestartPolicy,
			[]corev1.RestartPolicy{corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure}))
	}
	containers := job.Spec.Template.Spec.Containers
	if len(containers) == 0 {
		return append(errs, field.Required(pod.Child("containers"), "a trial needs a container that runs the program"))
	}
	isPrimary := func(c corev1.Container) bool { return c.Name == primary }
	if primary != "" && !slices.ContainsFunc(containers, isPrimary) {
		errs = append(errs, field.Invalid(at.Child("primaryContainerName"), primary,
			fmt.Sprintf("must be the name of a container in the template, which has: %s", namesOf(containers))))
	}
	return errs
}

// decodeJob decodes strictly: a field that a Job does not have is an error.
func decodeJob(run *unstructured.Unstructured, source *field.Path) (*batchv1.Job, field.ErrorList) {
	text, err := json.Marshal(run.Object)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(source, field.OmitValueType{}, err.Error())}
	}
	job := &batchv1.Job{}
	strict, err := kjson.UnmarshalStrict(text, job)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(source, field.OmitValueType{}, "must be a batch/v1 Job: "+err.Error())}
	}
	var errs field.ErrorList
	for _, err := range strict {
		errs = append(errs, field.Invalid(source, field.OmitValueType{}, "must be a batch/v1 Job: "+err.Error()))
	}
	return job, errs
}

// namesOf joins the names of containers for a message.
func namesOf(containers []corev1.Container) string {
	text := ""
	for i, c := range containers {
		if i > 0 {
			text += ", "
		}
		text += c.Name
	}
	return text
}
