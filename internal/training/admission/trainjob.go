// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	jobset "diwan.dev/diwan/api/jobset/v1alpha2"
	"diwan.dev/diwan/api/trainer/v1alpha1"
	"diwan.dev/diwan/internal/platform/admission"
	"diwan.dev/diwan/internal/training/trainingruntime"
)

func mutateTrainJob(_ context.Context, req ctrladmission.Request) ctrladmission.Response {
	job := &v1alpha1.TrainJob{}
	warnings, err := admission.Decode(req.Object.Raw, job)
	if err != nil {
		return admission.Unreadable(err, nil)
	}
	old, err := admission.Before[v1alpha1.TrainJob](req)
	if err != nil {
		return admission.Unreadable(err, nil)
	}
	job.SetDefaults()
	job.StampPatches(old, metav1.Now())
	return admission.Patched(req.Object.Raw, job).WithWarnings(warnings...)
}

func (c Config) validateTrainJob(ctx context.Context, req ctrladmission.Request) ctrladmission.Response {
	job := &v1alpha1.TrainJob{}
	if _, err := admission.Decode(req.Object.Raw, job); err != nil {
		return admission.Unreadable(err, nil)
	}
	old, err := admission.Before[v1alpha1.TrainJob](req)
	if err != nil {
		return admission.Unreadable(err, nil)
	}
	job.SetDefaults()
	var errs field.ErrorList
	if old != nil {
		old.SetDefaults()
		if equality.Semantic.DeepEqual(job.Spec, old.Spec) {
			return ctrladmission.Allowed("")
		}
		errs = job.ValidateUpdate(old)
	}
	errs = append(errs, job.Validate()...)
	if len(errs) > 0 {
		return admission.Decide(req, errs)
	}
	if !c.Known && job.Spec.RuntimeRef.Is(v1alpha1.TrainingRuntimeKind) {
		return ctrladmission.Allowed("") // the reconciler checks it
	}
	runtime, err := trainingruntime.Find(ctx, c.Reader, job)
	switch {
	case apierrors.IsNotFound(err) && old == nil:
		return admission.Decide(req, field.ErrorList{field.Invalid(field.NewPath("spec", "runtimeRef"), job.Spec.RuntimeRef.Name, err.Error()+": it must be created before the TrainJob is")})
	case apierrors.IsNotFound(err):
		return ctrladmission.Allowed("") // the job has a snapshot
	case err != nil:
		return ctrladmission.Errored(http.StatusInternalServerError, err)
	}
	answer := admission.Decide(req, trainingruntime.Validate(job, trainingruntime.SpecOf(runtime)))
	if runtime.GetLabels()[v1alpha1.LabelSupport] == v1alpha1.SupportDeprecated {
		answer = answer.WithWarnings(fmt.Sprintf("Referenced runtime %q is deprecated and will be removed", runtime.GetName()))
	}
	return answer
}

// validateRuntime checks runtimes of one kind.
func validateRuntime(empty func() client.Object) ctrladmission.HandlerFunc {
	return func(_ context.Context, req ctrladmission.Request) ctrladmission.Response {
		runtime := empty()
		warnings, err := admission.Decode(req.Object.Raw, runtime)
		if err != nil {
			return admission.Unreadable(err, nil)
		}
		if runtime.GetLabels()[v1alpha1.LabelSupport] == v1alpha1.SupportDeprecated {
			warnings = append(warnings, fmt.Sprintf("Runtime %q is deprecated and will be removed", runtime.GetName()))
		}
		spec := trainingruntime.SpecOf(runtime)
		spec.SetDefaults()
		return admission.Decide(req, spec.Validate(field.NewPath("spec"))).WithWarnings(warnings...)
	}
}

func mutateJobSet(_ context.Context, req ctrladmission.Request) ctrladmission.Response {
	set := &jobset.JobSet{}
	warnings, err := admission.Decode(req.Object.Raw, set)
	if err != nil {
		return admission.Unreadable(err, nil)
	}
	set.SetDefaults()
	return admission.Patched(req.Object.Raw, set).WithWarnings(warnings...)
}

func validateJobSet(_ context.Context, req ctrladmission.Request) ctrladmission.Response {
	set := &jobset.JobSet{}
	if _, err := admission.Decode(req.Object.Raw, set); err != nil {
		return admission.Unreadable(err, nil)
	}
	set.SetDefaults()
	old, err := admission.Before[jobset.JobSet](req)
	if err != nil {
		return admission.Unreadable(err, nil)
	}
	if old == nil {
		return admission.Decide(req, set.Validate())
	}
	return admission.Decide(req, set.ValidateUpdate(old))
}
