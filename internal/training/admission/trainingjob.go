// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
	"diwan.dev/diwan/internal/platform/admission"
)

// validateJob checks jobs of one kind. Objects of which only the metadata change
// pass, so that what an earlier version let in can be cleaned up.
func validateJob(empty v1.Job) ctrladmission.HandlerFunc {
	template := field.NewPath("spec", empty.Traits().Field)
	return func(_ context.Context, req ctrladmission.Request) ctrladmission.Response {
		job := empty.DeepCopyObject().(v1.Job)
		warnings, err := admission.Decode(req.Object.Raw, job)
		if err != nil {
			return admission.Unreadable(err, template)
		}
		var errs field.ErrorList
		if len(req.OldObject.Raw) > 0 {
			old := empty.DeepCopyObject().(v1.Job)
			if _, err := admission.Decode(req.OldObject.Raw, old); err == nil {
				if sameSpec(job, old) {
					return ctrladmission.Allowed("")
				}
				errs = v1.ValidateUpdate(job, old)
			}
		}
		errs = append(errs, v1.Validate(job)...)
		return admission.Decide(req, errs).WithWarnings(append(warnings, v1.Warnings(job)...)...)
	}
}

// sameSpec reports whether two jobs of one kind have the same spec.
func sameSpec(a, b v1.Job) bool {
	spec := func(j v1.Job) any { return reflect.ValueOf(j).Elem().FieldByName("Spec").Interface() }
	return equality.Semantic.DeepEqual(spec(a), spec(b))
}
