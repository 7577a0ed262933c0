// SPDX-License-Identifier: Apache-2.0

package v1alpha2

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

const (
	maxLabel          = 63 // characters of a host name's part, and of a label's value
	maxClaimName      = 253
	podSuffix         = "-abcde" // what the Job controller adds to a Pod's name
	maxDependencies   = 5
	maxReplicatedJobs = 100
)

// ruleName matches the names of failure policy rules.
var ruleName = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

// failureReasons are the reasons with which Jobs fail.
var failureReasons = []string{
	batchv1.JobReasonBackoffLimitExceeded, batchv1.JobReasonDeadlineExceeded, batchv1.JobReasonFailedIndexes,
	batchv1.JobReasonMaxFailedIndexesExceeded, batchv1.JobReasonPodFailurePolicy,
}

// Validate validates a set with its defaults. Kubernetes itself validates a
// Job's template when the Job is created.
func (j *JobSet) Validate() field.ErrorList {
	name := j.Name
	if name == "" {
		name = j.GenerateName + "abcde"
	}
	return j.Spec.Validate(name, field.NewPath("spec"))
}

// Validate validates the spec of a set with that name.
func (s *JobSetSpec) Validate(name string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	jobs := map[string]bool{}
	if n := len(s.ReplicatedJobs); n > maxReplicatedJobs {
		errs = append(errs, field.TooMany(at.Child("replicatedJobs"), n, maxReplicatedJobs))
	}
	for i := range s.ReplicatedJobs {
		r := &s.ReplicatedJobs[i]
		errs = append(errs, r.validate(name, jobs, at.Child("replicatedJobs").Index(i))...)
		jobs[r.Name] = true
	}
	if s.StartupPolicy != nil && s.StartupPolicy.StartupPolicyOrder == InOrder &&
		slices.ContainsFunc(s.ReplicatedJobs, func(r ReplicatedJob) bool { return len(r.DependsOn) > 0 }) {
		errs = append(errs, field.Forbidden(at.Child("startupPolicy"), "StartupPolicy and DependsOn APIs are mutually exclusive"))
	}
	if n := s.Network; n != nil && n.Subdomain != "" {
		for _, reason := range validation.IsDNS1035Label(n.Subdomain) {
			errs = append(errs, field.Invalid(at.Child("network", "subdomain"), n.Subdomain, reason))
		}
	}
	if s.ManagedBy != nil {
		errs = append(errs, validation.IsDomainPrefixedPath(at.Child("managedBy"), *s.ManagedBy)...)
		if len(*s.ManagedBy) > maxLabel {
			errs = append(errs, field.TooLong(at.Child("managedBy"), *s.ManagedBy, maxLabel))
		}
	}
	if p := s.SuccessPolicy; p != nil {
		errs = append(errs, known(p.TargetReplicatedJobs, jobs, at.Child("successPolicy", "targetReplicatedJobs"))...)
	}
	if s.FailurePolicy != nil {
		errs = append(errs, s.FailurePolicy.validate(jobs, at.Child("failurePolicy"))...)
	}
	if s.Coordinator != nil {
		errs = append(errs, s.validateCoordinator(name, at.Child("coordinator"))...)
	}
	return append(errs, s.validateClaims(name, at.Child("volumeClaimPolicies"))...)
}

// validate checks one replicated job; earlier are those before it.
func (r *ReplicatedJob) validate(set string, earlier map[string]bool, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if earlier[r.Name] {
		errs = append(errs, field.Duplicate(at.Child("name"), r.Name))
	}
	count, pods := int64(r.Count()), int64(ptr.Deref(r.Template.Spec.Parallelism, 1))
	if count < 0 || pods < 0 || count*pods > math.MaxInt32 {
		errs = append(errs, field.Invalid(at.Child("replicas"), count, fmt.Sprintf("replicas times parallelism must be from 0 to %d", math.MaxInt32)))
		return errs
	}
	for _, reason := range validation.IsDNS1035Label(r.GroupName) {
		errs = append(errs, field.Invalid(at.Child("groupName"), r.GroupName, reason))
	}
	longest := JobName(set, r.Name, max(int(count)-1, 0))
	names := []string{longest}
	if r.Template.Spec.Completions != nil {
		names = append(names, fmt.Sprintf("%s-%d%s", longest, max(*r.Template.Spec.Completions-1, 0), podSuffix))
	}
	for _, n := range names {
		for _, reason := range validation.IsDNS1035Label(n) {
			if len(n) > maxLabel {
				reason = fmt.Sprintf("JobSet name is too long: names of its Jobs and Pods would exceed %d characters", maxLabel)
			}
			errs = append(errs, field.Invalid(at.Child("name"), n, reason))
		}
	}
	errs = append(errs, metav1validation.ValidateLabels(r.Template.Labels, at.Child("template", "metadata", "labels"))...)
	if n := len(r.DependsOn); n > maxDependencies {
		errs = append(errs, field.TooMany(at.Child("dependsOn"), n, maxDependencies))
	}
	for i, d := range r.DependsOn {
		if !earlier[d.Name] {
			errs = append(errs, field.Invalid(at.Child("dependsOn").Index(i).Child("name"), d.Name, "must be an earlier replicated job"))
		}
		if d.Status != DependencyReady && d.Status != DependencyComplete {
			errs = append(errs, field.NotSupported(at.Child("dependsOn").Index(i).Child("status"), d.Status, []DependsOnStatus{DependencyReady, DependencyComplete}))
		}
	}
	return errs
}

// known requires that names are those of replicated jobs.
func known(names []string, jobs map[string]bool, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, name := range names {
		if !jobs[name] {
			errs = append(errs, field.Invalid(at.Index(i), name, "there is no replicated job with that name"))
		}
	}
	return errs
}

func (p *FailurePolicy) validate(jobs map[string]bool, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if p.RestartStrategy == InPlaceRestart {
		errs = append(errs, field.NotSupported(at.Child("restartStrategy"), p.RestartStrategy, []RestartStrategy{Recreate, BlockingRecreate}))
	}
	names := map[string]bool{}
	for i, r := range p.Rules {
		rule := at.Child("rules").Index(i)
		if names[r.Name] {
			errs = append(errs, field.Duplicate(rule.Child("name"), r.Name))
		}
		names[r.Name] = true
		if len(r.Name) > 128 || !ruleName.MatchString(r.Name) {
			errs = append(errs, field.Invalid(rule.Child("name"), r.Name, "must match "+ruleName.String()+" and have at most 128 characters"))
		}
		if actions := []FailurePolicyAction{FailJobSet, RestartJobSet, RestartJobSetAndIgnoreMaxRestarts}; !slices.Contains(actions, r.Action) {
			errs = append(errs, field.NotSupported(rule.Child("action"), r.Action, actions))
		}
		for k, reason := range r.OnJobFailureReasons {
			if !slices.Contains(failureReasons, reason) {
				errs = append(errs, field.NotSupported(rule.Child("onJobFailureReasons").Index(k), reason, failureReasons))
			}
		}
		for k, pattern := range r.OnJobFailureMessagePatterns {
			if _, err := regexp.Compile(pattern); err != nil {
				errs = append(errs, field.Invalid(rule.Child("onJobFailureMessagePatterns").Index(k), pattern, err.Error()))
			}
		}
		errs = append(errs, known(r.TargetReplicatedJobs, jobs, rule.Child("targetReplicatedJobs"))...)
	}
	return errs
}

func (s *JobSetSpec) validateCoordinator(name string, at *field.Path) field.ErrorList {
	c := s.Coordinator
	i := slices.IndexFunc(s.ReplicatedJobs, func(r ReplicatedJob) bool { return r.Name == c.ReplicatedJob })
	if i < 0 {
		return field.ErrorList{field.Invalid(at.Child("replicatedJob"), c.ReplicatedJob, "there is no replicated job with that name")}
	}
	r := &s.ReplicatedJobs[i]
	var errs field.ErrorList
	if c.JobIndex < 0 || c.JobIndex >= r.Count() {
		errs = append(errs, field.Invalid(at.Child("jobIndex"), c.JobIndex, "there is no such Job"))
	}
	job := r.Template.Spec
	if ptr.Deref(job.CompletionMode, "") != batchv1.IndexedCompletion || job.Completions == nil {
		errs = append(errs, field.Invalid(at.Child("replicatedJob"), c.ReplicatedJob, "its Jobs must have completions and completionMode Indexed"))
	} else if c.PodIndex < 0 || c.PodIndex >= int(*job.Completions) {
		errs = append(errs, field.Invalid(at.Child("podIndex"), c.PodIndex, "there is no such Pod"))
	}
	set := &JobSet{Spec: *s}
	set.Name = name
	if host := HostName(name, c.ReplicatedJob, c.JobIndex, c.PodIndex, set.Subdomain()); len(host) > maxLabel {
		errs = append(errs, field.Invalid(at, host, fmt.Sprintf("the Pod's host name is a label value of at most %d characters", maxLabel)))
	}
	return errs
}

func (s *JobSetSpec) validateClaims(set string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := map[string]bool{}
	for i, p := range s.VolumeClaimPolicies {
		for k, template := range p.Templates {
			name := at.Index(i).Child("templates").Index(k).Child("metadata", "name")
			if names[template.Name] {
				errs = append(errs, field.Duplicate(name, template.Name))
			}
			names[template.Name] = true
			for _, reason := range validation.IsDNS1123Subdomain(template.Name) {
				errs = append(errs, field.Invalid(name, template.Name, reason))
			}
			if len(ClaimName(set, template.Name)) > maxClaimName {
				errs = append(errs, field.TooLong(name, template.Name, maxClaimName-len(set)-1))
			}
			if template.Namespace != "" {
				errs = append(errs, field.Forbidden(at.Index(i).Child("templates").Index(k).Child("metadata", "namespace"), "claims are created in the JobSet's namespace"))
			}
			if !slices.ContainsFunc(s.ReplicatedJobs, func(r ReplicatedJob) bool { return r.Mounts(template.Name) }) {
				errs = append(errs, field.Invalid(name, template.Name, "no container has a volume mount with that name"))
			}
		}
	}
	return errs
}

// Mounts reports whether a container of the replicated job's Pods has a volume
// mount with that name.
func (r *ReplicatedJob) Mounts(volume string) bool {
	pod := &r.Template.Spec.Template.Spec
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		for _, m := range c.VolumeMounts {
			if m.Name == volume {
				return true
			}
		}
	}
	return false
}

// ValidateUpdate checks that immutable fields are unchanged. The Pods' labels,
// annotations, placement and gates may change while the set is suspended or
// being suspended, as Kueue requires.
func (j *JobSet) ValidateUpdate(old *JobSet) field.ErrorList {
	at := field.NewPath("spec")
	before, after := old.Spec.DeepCopy(), j.Spec.DeepCopy()
	before.SetDefaults()
	after.SetDefaults()
	after.Suspend, after.TTLSecondsAfterFinished = before.Suspend, before.TTLSecondsAfterFinished
	if old.Spec.IsSuspended() || j.Spec.IsSuspended() {
		keepPods(after, before)
	}
	var errs field.ErrorList
	immutable := func(name string, is, was any) {
		if !equality.Semantic.DeepEqual(is, was) {
			errs = append(errs, field.Forbidden(at.Child(name), "field is immutable"+hint(name)))
		}
	}
	immutable("replicatedJobs", after.ReplicatedJobs, before.ReplicatedJobs)
	immutable("network", after.Network, before.Network)
	immutable("successPolicy", after.SuccessPolicy, before.SuccessPolicy)
	immutable("failurePolicy", after.FailurePolicy, before.FailurePolicy)
	immutable("startupPolicy", after.StartupPolicy, before.StartupPolicy)
	immutable("managedBy", after.ManagedBy, before.ManagedBy)
	immutable("volumeClaimPolicies", after.VolumeClaimPolicies, before.VolumeClaimPolicies)
	return errs
}

func hint(name string) string {
	if strings.HasPrefix(name, "replicated") {
		return ", except for the Pod templates of a suspended JobSet"
	}
	return ""
}

// keepPods sets the Pod templates of after to those of before.
func keepPods(after, before *JobSetSpec) {
	for i := range after.ReplicatedJobs {
		r := &after.ReplicatedJobs[i]
		k := slices.IndexFunc(before.ReplicatedJobs, func(b ReplicatedJob) bool { return b.Name == r.Name })
		if k < 0 {
			continue
		}
		is, was := &r.Template.Spec.Template, &before.ReplicatedJobs[k].Template.Spec.Template
		is.Labels, is.Annotations = was.Labels, was.Annotations
		is.Spec.NodeSelector, is.Spec.Tolerations = was.Spec.NodeSelector, was.Spec.Tolerations
		is.Spec.SchedulingGates, is.Spec.Affinity = was.Spec.SchedulingGates, was.Spec.Affinity
	}
}
