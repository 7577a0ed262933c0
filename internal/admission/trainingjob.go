// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"net/http"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

// pathValidateJob is where the API server asks about a kind of training job, as
// with the training operator.
func pathValidateJob(kind string) string {
	return "/validate-kubeflow-org-v1-" + strings.ToLower(kind)
}

// trainingJobs are the handlers for the kinds of training jobs.
func trainingJobs() map[string]http.Handler {
	handlers := map[string]http.Handler{}
	for _, empty := range v1.Jobs() {
		handlers[pathValidateJob(empty.Traits().Kind)] = &ctrladmission.Webhook{Handler: validateJob(empty)}
	}
	return handlers
}

// validateJob checks jobs of one kind. Objects of which only the metadata change
// pass, so that what an earlier version let in can be cleaned up.
func validateJob(empty v1.Job) ctrladmission.HandlerFunc {
	template := field.NewPath("spec", empty.Traits().Field)
	return func(_ context.Context, req ctrladmission.Request) ctrladmission.Response {
		job := empty.DeepCopyObject().(v1.Job)
		warnings, err := decode(req.Object.Raw, job)
		if err != nil {
			return unreadable(err, template)
		}
		var errs field.ErrorList
		if len(req.OldObject.Raw) > 0 {
			old := empty.DeepCopyObject().(v1.Job)
			if _, err := decode(req.OldObject.Raw, old); err == nil {
				if sameSpec(job, old) {
					return ctrladmission.Allowed("")
				}
				errs = v1.ValidateUpdate(job, old)
			}
		}
		errs = append(errs, v1.Validate(job)...)
		return decide(req, errs).WithWarnings(append(warnings, v1.Warnings(job)...)...)
	}
}

// sameSpec reports whether two jobs of one kind have the same spec.
func sameSpec(a, b v1.Job) bool {
	spec := func(j v1.Job) any { return reflect.ValueOf(j).Elem().FieldByName("Spec").Interface() }
	return equality.Semantic.DeepEqual(spec(a), spec(b))
}
