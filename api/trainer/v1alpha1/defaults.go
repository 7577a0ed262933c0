// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// SetDefaults fills in unset fields.
func (t *TrainJob) SetDefaults() { t.Spec.SetDefaults() }

// SetDefaults fills in unset fields.
func (s *TrainJobSpec) SetDefaults() {
	if s.RuntimeRef.APIGroup == nil {
		s.RuntimeRef.APIGroup = ptr.To(Group)
	}
	if s.RuntimeRef.Kind == nil {
		s.RuntimeRef.Kind = ptr.To(ClusterTrainingRuntimeKind)
	}
	if s.Suspend == nil {
		s.Suspend = ptr.To(false)
	}
	if s.ManagedBy == nil {
		s.ManagedBy = ptr.To(DefaultManager)
	}
	s.Checkpoint.SetDefaults()
}

// StampPatches sets the time of each patch that is new or has changed since
// old, which is nil on creation.
func (t *TrainJob) StampPatches(old *TrainJob, now metav1.Time) {
	before := map[string]RuntimePatch{}
	if old != nil {
		for _, p := range old.Spec.RuntimePatches {
			before[p.Manager] = p
		}
	}
	for i := range t.Spec.RuntimePatches {
		p := &t.Spec.RuntimePatches[i]
		was, known := before[p.Manager]
		switch {
		case known && equality.Semantic.DeepEqual(was.TrainingRuntimeSpec, p.TrainingRuntimeSpec):
			p.Time = was.Time
		case known || p.Time == nil:
			p.Time = &now
		}
	}
}

// SetDefaults fills in unset fields.
func (s *TrainingRuntimeSpec) SetDefaults() {
	if s.MLPolicy != nil && s.MLPolicy.MPI != nil {
		s.MLPolicy.MPI.setDefaults()
	}
	for i := range s.Template.Spec.ReplicatedJobs {
		if r := &s.Template.Spec.ReplicatedJobs[i]; r.Replicas == nil {
			r.Replicas = ptr.To(int32(1))
		}
	}
}

func (p *MPIMLPolicySource) setDefaults() {
	if p.NumProcPerNode == nil {
		p.NumProcPerNode = ptr.To(int32(1))
	}
	if ptr.Deref(p.MPIImplementation, "") == "" {
		p.MPIImplementation = ptr.To(OpenMPI)
	}
	if ptr.Deref(p.SSHAuthMountPath, "") == "" {
		p.SSHAuthMountPath = ptr.To("/root/.ssh")
	}
	if p.RunLauncherAsNode == nil {
		p.RunLauncherAsNode = ptr.To(false)
	}
}

// IsSuspended reports whether no Pod of the job may run.
func (t *TrainJob) IsSuspended() bool { return ptr.Deref(t.Spec.Suspend, false) }

// IsFinished reports whether the job is complete or has failed.
func (t *TrainJob) IsFinished() bool {
	return meta.IsStatusConditionTrue(t.Status.Conditions, ConditionComplete) ||
		meta.IsStatusConditionTrue(t.Status.Conditions, ConditionFailed)
}

// IsOurs reports whether the built-in controller manages the job.
func (t *TrainJob) IsOurs() bool {
	return ptr.Deref(t.Spec.ManagedBy, DefaultManager) == DefaultManager
}

// Is reports whether the reference is to a runtime of this API with that
// kind.
func (r *RuntimeRef) Is(kind string) bool {
	return ptr.Deref(r.APIGroup, Group) == Group && ptr.Deref(r.Kind, ClusterTrainingRuntimeKind) == kind
}
