// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

var storageURI = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://.+$`)

// Validate validates a job, independent of its runtime.
func (t *TrainJob) Validate() field.ErrorList {
	var errs field.ErrorList
	for _, reason := range validation.IsDNS1035Label(t.Name) {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), t.Name, "metadata.name must match RFC 1035 DNS label format: "+reason))
	}
	return append(errs, t.Spec.Validate(field.NewPath("spec"))...)
}

// Validate validates the spec of a job, independent of its runtime.
func (s *TrainJobSpec) Validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s.RuntimeRef.Name == "" {
		errs = append(errs, field.Required(at.Child("runtimeRef", "name"), "specify the name of a runtime, such as torch-distributed"))
	}
	if !s.RuntimeRef.Is(ClusterTrainingRuntimeKind) && !s.RuntimeRef.Is(TrainingRuntimeKind) {
		errs = append(errs, field.Invalid(at.Child("runtimeRef"), fmt.Sprintf("%s.%s", ptr.Deref(s.RuntimeRef.Kind, ""), ptr.Deref(s.RuntimeRef.APIGroup, "")),
			"unsupported runtime: must be a ClusterTrainingRuntime or TrainingRuntime of "+Group))
	}
	if by := ptr.Deref(s.ManagedBy, DefaultManager); by != DefaultManager && by != MultiKueue {
		errs = append(errs, field.NotSupported(at.Child("managedBy"), by, []string{DefaultManager, MultiKueue}))
	}
	if s.ActiveDeadlineSeconds < 0 {
		errs = append(errs, field.Invalid(at.Child("activeDeadlineSeconds"), s.ActiveDeadlineSeconds, "must be at least 1"))
	}
	if i := s.Initializer; i != nil {
		errs = append(errs, i.Dataset.validate(at.Child("initializer", "dataset"))...)
		errs = append(errs, i.Model.validate(at.Child("initializer", "model"))...)
	}
	if t := s.Trainer; t != nil {
		errs = append(errs, validateEnv(t.Env, at.Child("trainer", "env"))...)
		if ptr.Deref(t.NumNodes, 1) < 0 {
			errs = append(errs, field.Invalid(at.Child("trainer", "numNodes"), *t.NumNodes, "must not be negative"))
		}
		if ptr.Deref(t.NumProcPerNode, 1) < 1 {
			errs = append(errs, field.Invalid(at.Child("trainer", "numProcPerNode"), *t.NumProcPerNode, "numProcPerNode must be greater than or equal to 1"))
		}
	}
	errs = append(errs, s.Checkpoint.Validate(at.Child("checkpoint"))...)
	return append(errs, s.validatePatches(at.Child("runtimePatches"))...)
}

func (a *Asset) validate(at *field.Path) field.ErrorList {
	if a == nil {
		return nil
	}
	var errs field.ErrorList
	if uri := ptr.Deref(a.StorageURI, ""); uri != "" && !storageURI.MatchString(uri) {
		errs = append(errs, field.Invalid(at.Child("storageUri"), uri, "storageUri may be empty, or it must be a valid URI (scheme://...)"))
	}
	return append(errs, validateEnv(a.Env, at.Child("env"))...)
}

// validateEnv finds variables without a name or with a duplicate name.
func validateEnv(env []corev1.EnvVar, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, e := range env {
		switch {
		case e.Name == "" || strings.Contains(e.Name, "="):
			errs = append(errs, field.Invalid(at.Index(i).Child("name"), e.Name, "must be the name of an environment variable"))
		case seen[e.Name]:
			errs = append(errs, field.Duplicate(at.Index(i).Child("name"), e.Name))
		}
		seen[e.Name] = true
	}
	return errs
}

func (s *TrainJobSpec) validatePatches(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, p := range s.RuntimePatches {
		manager := at.Index(i).Child("manager")
		errs = append(errs, validation.IsDomainPrefixedPath(manager, p.Manager)...)
		if seen[p.Manager] {
			errs = append(errs, field.Duplicate(manager, p.Manager))
		}
		seen[p.Manager] = true
		template := p.JobSet()
		path := at.Index(i).Child("trainingRuntimeSpec", "template")
		errs = append(errs, labelsAlone(template.Metadata, path.Child("metadata"))...)
		if template.Spec == nil {
			continue
		}
		for k, r := range template.Spec.ReplicatedJobs {
			job := path.Child("spec", "replicatedJobs").Index(k).Child("template")
			if r.Template == nil {
				continue
			}
			errs = append(errs, labelsAlone(r.Template.Metadata, job.Child("metadata"))...)
			if r.Template.Spec != nil && r.Template.Spec.Template != nil {
				errs = append(errs, labelsAlone(r.Template.Spec.Template.Metadata, job.Child("spec", "template", "metadata"))...)
			}
		}
	}
	return errs
}

// JobSet is the patch of the JobSet; never nil.
func (p *RuntimePatch) JobSet() *JobSetTemplatePatch {
	if p.TrainingRuntimeSpec == nil || p.TrainingRuntimeSpec.Template == nil {
		return &JobSetTemplatePatch{}
	}
	return p.TrainingRuntimeSpec.Template
}

// Pod is the patch of the Pods; nil if there is none.
func (p *ReplicatedJobPatch) Pod() *PodSpecPatch {
	if p.Template == nil || p.Template.Spec == nil || p.Template.Spec.Template == nil {
		return nil
	}
	return p.Template.Spec.Template.Spec
}

// labelsAlone requires that metadata has only labels and annotations.
func labelsAlone(m *metav1.ObjectMeta, at *field.Path) field.ErrorList {
	if m == nil {
		return nil
	}
	rest := m.DeepCopy()
	rest.Labels, rest.Annotations = nil, nil
	errs := metav1validation.ValidateLabels(m.Labels, at.Child("labels"))
	if !equality.Semantic.DeepEqual(*rest, metav1.ObjectMeta{}) {
		errs = append(errs, field.Forbidden(at, "only labels and annotations can be patched"))
	}
	return errs
}

// ValidateUpdate checks that immutable fields are unchanged. Both jobs have
// their defaults.
func (t *TrainJob) ValidateUpdate(old *TrainJob) field.ErrorList {
	at := field.NewPath("spec")
	var errs field.ErrorList
	immutable := func(name string, is, was any) {
		if !equality.Semantic.DeepEqual(is, was) {
			errs = append(errs, field.Invalid(at.Child(name), field.OmitValueType{}, "field is immutable"))
		}
	}
	is, was := &t.Spec, &old.Spec
	immutable("runtimeRef", is.RuntimeRef, was.RuntimeRef)
	immutable("initializer", is.Initializer, was.Initializer)
	immutable("trainer", is.Trainer, was.Trainer)
	errs = append(errs, is.Checkpoint.Unchanged(was.Checkpoint, at.Child("checkpoint"))...)
	immutable("activeDeadlineSeconds", is.ActiveDeadlineSeconds, was.ActiveDeadlineSeconds)
	immutable("managedBy", is.ManagedBy, was.ManagedBy)
	if samePatches(is.RuntimePatches, was.RuntimePatches) {
		return errs
	}
	patches := at.Child("runtimePatches")
	if !t.IsSuspended() && !old.IsSuspended() {
		return append(errs, field.Forbidden(patches, "RuntimePatches can only be modified when the TrainJob is suspended before or after the update"))
	}
	for _, job := range old.Status.JobsStatus {
		if ptr.Deref(job.Active, 0) > 0 {
			errs = append(errs, field.Forbidden(patches, fmt.Sprintf("RuntimePatches cannot be modified when the JobSet's ReplicatedJob %s is still active", job.Name)))
		}
	}
	return errs
}

// samePatches compares patches, ignoring when they were written.
func samePatches(a, b []RuntimePatch) bool {
	return slices.EqualFunc(a, b, func(a, b RuntimePatch) bool {
		return a.Manager == b.Manager && equality.Semantic.DeepEqual(a.TrainingRuntimeSpec, b.TrainingRuntimeSpec)
	})
}

// containers are the containers that the templates for the parts of a TrainJob
// must have.
var containers = map[string]string{AncestorTrainer: Node, DatasetInitializer: DatasetInitializer, ModelInitializer: ModelInitializer}

// Validate validates a runtime with its defaults.
func (s *TrainingRuntimeSpec) Validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	jobs := at.Child("template", "spec", "replicatedJobs")
	for i, r := range s.Template.Spec.ReplicatedJobs {
		want, ok := containers[r.Template.Labels[LabelAncestor]]
		if !ok {
			continue
		}
		if r.Count() != 1 {
			errs = append(errs, field.Invalid(jobs.Index(i).Child("replicas"), r.Count(), "always must be 1"))
		}
		pod := r.Template.Spec.Template.Spec
		if !slices.ContainsFunc(pod.Containers, func(c corev1.Container) bool { return c.Name == want }) {
			errs = append(errs, field.Invalid(jobs.Index(i).Child("template", "spec", "template", "spec", "containers"), field.OmitValueType{},
				fmt.Sprintf("must contain the required container for the ancestor: %s", r.Template.Labels[LabelAncestor])))
		}
	}
	if p := s.PodGroupPolicy; p != nil && p.Coscheduling != nil && p.Volcano != nil {
		errs = append(errs, field.Forbidden(at.Child("podGroupPolicy"), "only one of coscheduling and volcano can be set"))
	}
	return errs
}
