// SPDX-License-Identifier: Apache-2.0

package v1alpha2

import (
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// SetDefaults fills in unset fields, as JobSet's own webhook and schema do.
func (j *JobSet) SetDefaults() { j.Spec.SetDefaults() }

// SetDefaults fills in unset fields.
func (s *JobSetSpec) SetDefaults() {
	if s.SuccessPolicy == nil {
		s.SuccessPolicy = &SuccessPolicy{Operator: OperatorAll}
	}
	if s.StartupPolicy == nil {
		s.StartupPolicy = &StartupPolicy{StartupPolicyOrder: AnyOrder}
	}
	if s.Network == nil {
		s.Network = &Network{}
	}
	if s.Network.EnableDNSHostnames == nil {
		s.Network.EnableDNSHostnames = ptr.To(true)
	}
	if s.Network.PublishNotReadyAddresses == nil {
		s.Network.PublishNotReadyAddresses = ptr.To(true)
	}
	for i := range s.ReplicatedJobs {
		s.ReplicatedJobs[i].setDefaults()
	}
	if s.FailurePolicy != nil {
		s.FailurePolicy.setDefaults()
	}
	for i := range s.VolumeClaimPolicies {
		p := &s.VolumeClaimPolicies[i]
		if p.RetentionPolicy == nil {
			p.RetentionPolicy = &VolumeRetentionPolicy{}
		}
		if p.RetentionPolicy.WhenDeleted == nil {
			p.RetentionPolicy.WhenDeleted = ptr.To(RetentionPolicyDelete)
		}
	}
}

func (r *ReplicatedJob) setDefaults() {
	if r.Replicas == nil {
		r.Replicas = ptr.To(int32(1))
	}
	if r.GroupName == "" {
		r.GroupName = DefaultGroup
	}
	job := &r.Template.Spec
	if job.CompletionMode == nil {
		job.CompletionMode = ptr.To(batchv1.IndexedCompletion)
	}
	if job.Template.Spec.RestartPolicy == "" {
		job.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	}
}

func (p *FailurePolicy) setDefaults() {
	if p.RestartStrategy == "" {
		p.RestartStrategy = Recreate
	}
	for i := range p.Rules {
		if p.Rules[i].Name == "" {
			p.Rules[i].Name = "failurePolicyRule" + strconv.Itoa(i)
		}
	}
}

// Count is how many Jobs are created from the template.
func (r *ReplicatedJob) Count() int { return int(ptr.Deref(r.Replicas, 1)) }

// IsSuspended reports whether no Pod of the set may run.
func (s *JobSetSpec) IsSuspended() bool { return ptr.Deref(s.Suspend, false) }
