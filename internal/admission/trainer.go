// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	jobset "diwan.dev/diwan/api/jobset/v1alpha2"
	"diwan.dev/diwan/api/trainer/v1alpha1"
	"diwan.dev/diwan/internal/trainingruntime"
)

// Paths on which the API server asks about training by TrainJobs; they are
// Kubeflow Trainer's and JobSet's.
const (
	PathMutateTrainJob                 = "/mutate-trainer-kubeflow-org-v1alpha1-trainjob"
	PathValidateTrainJob               = "/validate-trainer-kubeflow-org-v1alpha1-trainjob"
	PathValidateTrainingRuntime        = "/validate-trainer-kubeflow-org-v1alpha1-trainingruntime"
	PathValidateClusterTrainingRuntime = "/validate-trainer-kubeflow-org-v1alpha1-clustertrainingruntime"
	PathMutateJobSet                   = "/mutate-jobset-x-k8s-io-v1alpha2-jobset"
	PathValidateJobSet                 = "/validate-jobset-x-k8s-io-v1alpha2-jobset"
)

// trainerHandlers are the handlers of these paths.
func (c Config) trainerHandlers() map[string]ctrladmission.HandlerFunc {
	return map[string]ctrladmission.HandlerFunc{
		PathMutateTrainJob:                 mutateTrainJob,
		PathValidateTrainJob:               c.validateTrainJob,
		PathValidateTrainingRuntime:        validateRuntime(func() client.Object { return &v1alpha1.TrainingRuntime{} }),
		PathValidateClusterTrainingRuntime: validateRuntime(func() client.Object { return &v1alpha1.ClusterTrainingRuntime{} }),
		PathMutateJobSet:                   mutateJobSet,
		PathValidateJobSet:                 validateJobSet,
	}
}

// trainerMutating are the webhooks for defaults.
func trainerMutating(t Target) []admissionregistrationv1.MutatingWebhook {
	hook := func(name, path string, conditions []admissionregistrationv1.MatchCondition, rule admissionregistrationv1.RuleWithOperations) admissionregistrationv1.MutatingWebhook {
		return admissionregistrationv1.MutatingWebhook{
			Name: name, ClientConfig: t.client(path), Rules: []admissionregistrationv1.RuleWithOperations{rule}, MatchConditions: conditions,
			FailurePolicy: ptr.To(admissionregistrationv1.Fail), SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}
	}
	return []admissionregistrationv1.MutatingWebhook{
		hook("defaulter.trainjob.trainer.kubeflow.org", PathMutateTrainJob, nil, written(v1alpha1.GroupVersion.Group, v1alpha1.Version, "trainjobs")),
		hook("mjobset.kb.io", PathMutateJobSet, t.notByController(), written(jobset.Group, jobset.Version, "jobsets")),
	}
}

// trainerValidating are the webhooks for checks.
func trainerValidating(t Target) []admissionregistrationv1.ValidatingWebhook {
	hook := func(name, path string, conditions []admissionregistrationv1.MatchCondition, rule admissionregistrationv1.RuleWithOperations) admissionregistrationv1.ValidatingWebhook {
		return admissionregistrationv1.ValidatingWebhook{
			Name: name, ClientConfig: t.client(path), Rules: []admissionregistrationv1.RuleWithOperations{rule}, MatchConditions: conditions,
			FailurePolicy: ptr.To(admissionregistrationv1.Fail), SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}
	}
	return []admissionregistrationv1.ValidatingWebhook{
		hook("validator.trainjob.trainer.kubeflow.org", PathValidateTrainJob, nil, written(v1alpha1.Group, v1alpha1.Version, "trainjobs")),
		hook("validator.trainingruntime.trainer.kubeflow.org", PathValidateTrainingRuntime, nil, written(v1alpha1.Group, v1alpha1.Version, "trainingruntimes")),
		hook("validator.clustertrainingruntime.trainer.kubeflow.org", PathValidateClusterTrainingRuntime, t.notByController(),
			written(v1alpha1.Group, v1alpha1.Version, "clustertrainingruntimes")),
		hook("vjobset.kb.io", PathValidateJobSet, t.notByController(), written(jobset.Group, jobset.Version, "jobsets")),
	}
}

// written is the rule for what is created or updated.
func written(group, version, resource string) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource}},
	}
}

func mutateTrainJob(_ context.Context, req ctrladmission.Request) ctrladmission.Response {
	job := &v1alpha1.TrainJob{}
	warnings, err := decode(req.Object.Raw, job)
	if err != nil {
		return unreadable(err, nil)
	}
	old, err := before[v1alpha1.TrainJob](req)
	if err != nil {
		return unreadable(err, nil)
	}
	job.SetDefaults()
	job.StampPatches(old, metav1.Now())
	return patched(req.Object.Raw, job).WithWarnings(warnings...)
}

// before is the object as it was before an update, nil at a creation.
func before[T any](req ctrladmission.Request) (*T, error) {
	if len(req.OldObject.Raw) == 0 {
		return nil, nil
	}
	old := new(T)
	return old, json.Unmarshal(req.OldObject.Raw, old)
}

func (c Config) validateTrainJob(ctx context.Context, req ctrladmission.Request) ctrladmission.Response {
	job := &v1alpha1.TrainJob{}
	if _, err := decode(req.Object.Raw, job); err != nil {
		return unreadable(err, nil)
	}
	old, err := before[v1alpha1.TrainJob](req)
	if err != nil {
		return unreadable(err, nil)
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
		return decide(req, errs)
	}
	runtime, err := trainingruntime.Find(ctx, c.Reader, job)
	switch {
	case apierrors.IsNotFound(err) && old == nil:
		return decide(req, field.ErrorList{field.Invalid(field.NewPath("spec", "runtimeRef"), job.Spec.RuntimeRef.Name, err.Error()+": it must be created before the TrainJob is")})
	case apierrors.IsNotFound(err):
		return ctrladmission.Allowed("") // the job has a snapshot
	case err != nil:
		return ctrladmission.Errored(http.StatusInternalServerError, err)
	}
	answer := decide(req, trainingruntime.Validate(job, trainingruntime.SpecOf(runtime)))
	if runtime.GetLabels()[v1alpha1.LabelSupport] == v1alpha1.SupportDeprecated {
		answer = answer.WithWarnings(fmt.Sprintf("Referenced runtime %q is deprecated and will be removed", runtime.GetName()))
	}
	return answer
}

// validateRuntime checks runtimes of one kind.
func validateRuntime(empty func() client.Object) ctrladmission.HandlerFunc {
	return func(_ context.Context, req ctrladmission.Request) ctrladmission.Response {
		runtime := empty()
		warnings, err := decode(req.Object.Raw, runtime)
		if err != nil {
			return unreadable(err, nil)
		}
		if runtime.GetLabels()[v1alpha1.LabelSupport] == v1alpha1.SupportDeprecated {
			warnings = append(warnings, fmt.Sprintf("Runtime %q is deprecated and will be removed", runtime.GetName()))
		}
		spec := trainingruntime.SpecOf(runtime)
		spec.SetDefaults()
		return decide(req, spec.Validate(field.NewPath("spec"))).WithWarnings(warnings...)
	}
}

func mutateJobSet(_ context.Context, req ctrladmission.Request) ctrladmission.Response {
	set := &jobset.JobSet{}
	warnings, err := decode(req.Object.Raw, set)
	if err != nil {
		return unreadable(err, nil)
	}
	set.SetDefaults()
	return patched(req.Object.Raw, set).WithWarnings(warnings...)
}

func validateJobSet(_ context.Context, req ctrladmission.Request) ctrladmission.Response {
	set := &jobset.JobSet{}
	if _, err := decode(req.Object.Raw, set); err != nil {
		return unreadable(err, nil)
	}
	set.SetDefaults()
	old, err := before[jobset.JobSet](req)
	if err != nil {
		return unreadable(err, nil)
	}
	if old == nil {
		return decide(req, set.Validate())
	}
	return decide(req, set.ValidateUpdate(old))
}
