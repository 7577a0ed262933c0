// SPDX-License-Identifier: Apache-2.0

package v1alpha2

import (
	"fmt"
	"strconv"
)

// Labels on Jobs and Pods; each is also an annotation of the same name.
const (
	LabelJobSetName            = "jobset.sigs.k8s.io/jobset-name"
	LabelJobSetUID             = "jobset.sigs.k8s.io/jobset-uid"
	LabelReplicatedJobName     = "jobset.sigs.k8s.io/replicatedjob-name"
	LabelReplicatedJobReplicas = "jobset.sigs.k8s.io/replicatedjob-replicas"
	LabelGlobalReplicas        = "jobset.sigs.k8s.io/global-replicas"
	LabelJobIndex              = "jobset.sigs.k8s.io/job-index"
	LabelJobGlobalIndex        = "jobset.sigs.k8s.io/job-global-index"
	// LabelJobKey is the SHA-1 of the Job's namespace and name.
	LabelJobKey         = "jobset.sigs.k8s.io/job-key"
	LabelRestartAttempt = "jobset.sigs.k8s.io/restart-attempt"
	LabelGroupName      = "jobset.sigs.k8s.io/group-name"
	LabelGroupReplicas  = "jobset.sigs.k8s.io/group-replicas"
	LabelJobGroupIndex  = "jobset.sigs.k8s.io/job-group-index"
	// LabelCoordinator is the host name of the coordinator's Pod.
	LabelCoordinator = "jobset.sigs.k8s.io/coordinator"
)

// ControllerName is the value of managedBy that stands for the built-in controller.
const ControllerName = "jobset.sigs.k8s.io/jobset-controller"

// DefaultGroup is the group of replicated jobs that specify none.
const DefaultGroup = "default"

// The reasons of conditions and events.
const (
	ReasonAllJobsCompleted              = "AllJobsCompleted"
	ReasonFailedJobs                    = "FailedJobs"
	ReasonReachedMaxRestarts            = "ReachedMaxRestarts"
	ReasonSuspended                     = "SuspendedJobs"
	ReasonResumed                       = "ResumeJobs"
	ReasonFailJobSet                    = "FailJobSetFailurePolicyAction"
	ReasonRestartJobSet                 = "RestartJobSetFailurePolicyAction"
	ReasonRestartJobSetIgnoringMax      = "RestartJobSetAndIgnoreMaxRestartsFailurePolicyAction"
	ReasonRestartingByDefault           = "DefaultFailurePolicy"
	ReasonRestartingJobsReady           = "JobsReady"
	ReasonRestartingFailed              = "JobSetFailed"
	ReasonRestartingCompleted           = "JobSetCompleted"
	ReasonRestartingSuspended           = "JobSetSuspended"
	ReasonStartupInProgress             = "InOrderStartupPolicyInProgress"
	ReasonStartupCompleted              = "InOrderStartupPolicyCompleted"
	ReasonJobCreationFailed             = "JobCreationFailed"
	ReasonHeadlessServiceCreationFailed = "HeadlessServiceCreationFailed"
	ReasonClaimCreationFailed           = "PVCCreationFailed"
)

// JobName is the name of a replicated job's Job.
func JobName(jobSet, replicatedJob string, index int) string {
	return fmt.Sprintf("%s-%s-%d", jobSet, replicatedJob, index)
}

// HostName is the name by which the Pods of the same namespace reach a Pod:
// that of the Job's completion index pod, with the subdomain.
func HostName(jobSet, replicatedJob string, job, pod int, subdomain string) string {
	return JobName(jobSet, replicatedJob, job) + "-" + strconv.Itoa(pod) + "." + subdomain
}

// ClaimName is the name of the claim created from a template.
func ClaimName(jobSet, template string) string { return template + "-" + jobSet }

// Subdomain is the name of the Service that gives the set's Pods their host
// names.
func (j *JobSet) Subdomain() string {
	if n := j.Spec.Network; n != nil && n.Subdomain != "" {
		return n.Subdomain
	}
	return j.Name
}
