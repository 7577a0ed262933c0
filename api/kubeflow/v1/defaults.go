// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// SetDefaults fills in unset fields: replicas, restart policies, the port, the cleanup policy,
// the checkpoint, and those specific to the kind. Replica types get their usual spelling.
// Replicas without a template are left alone.
func SetDefaults(j Job) {
	t, replicas, policy := j.Traits(), j.Replicas(), j.Policy()
	for name, spec := range replicas {
		if usual, known := t.spelling(name); known && usual != name && replicas[usual] == nil {
			delete(replicas, name)
			replicas[usual] = spec
		}
	}
	j.setDefaults()
	if policy.CleanPodPolicy == nil {
		policy.CleanPodPolicy = new(CleanPodsNone)
	}
	policy.Checkpoint.SetDefaults()
	for _, spec := range replicas {
		if spec == nil {
			continue
		}
		if spec.Replicas == nil {
			spec.Replicas = new(int32(1))
		}
		if spec.RestartPolicy == "" {
			spec.RestartPolicy = t.RestartPolicy
		}
		t.setPort(&spec.Template.Spec)
	}
}

// spelling returns the canonical spelling of a replica type of this kind.
func (t *Traits) spelling(name ReplicaType) (ReplicaType, bool) {
	i := slices.IndexFunc(t.Types, func(usual ReplicaType) bool { return strings.EqualFold(string(usual), string(name)) })
	if i < 0 {
		return name, false
	}
	return t.Types[i], true
}

// Main returns the training container: the one with the kind's name, or the
// first; nil if there is none.
func (t *Traits) Main(pod *corev1.PodSpec) *corev1.Container {
	if len(pod.Containers) == 0 {
		return nil
	}
	i := slices.IndexFunc(pod.Containers, func(c corev1.Container) bool { return c.Name == t.Container })
	return &pod.Containers[max(i, 0)]
}

// ListensOn returns the port on which a replica's program listens, 0 if no port
// has that name.
func (t *Traits) ListensOn(spec *ReplicaSpec) int32 {
	if spec == nil {
		return 0
	}
	main := t.Main(&spec.Template.Spec)
	if main == nil {
		return 0
	}
	for _, p := range main.Ports {
		if p.Name == t.PortName {
			return p.ContainerPort
		}
	}
	return 0
}

func (t *Traits) setPort(pod *corev1.PodSpec) {
	main := t.Main(pod)
	if t.Port == 0 || main == nil || slices.ContainsFunc(main.Ports, func(p corev1.ContainerPort) bool { return p.Name == t.PortName }) {
		return
	}
	main.Ports = append(main.Ports, corev1.ContainerPort{Name: t.PortName, ContainerPort: t.Port})
}

func (j *TFJob) setDefaults() {
	if j.Spec.SuccessPolicy == nil {
		j.Spec.SuccessPolicy = new(SuccessDefault)
	}
}

func (j *PyTorchJob) setDefaults() {
	e := j.Spec.ElasticPolicy
	if e != nil {
		e.MinReplicas, e.MaxReplicas = bounds(e.MinReplicas, e.MaxReplicas, j.Spec.PyTorchReplicaSpecs[Worker])
	}
	if j.Spec.NprocPerNode == nil && (e == nil || e.NProcPerNode == nil) {
		j.Spec.NprocPerNode = new("auto")
	}
}

func (j *PaddleJob) setDefaults() {
	if e := j.Spec.ElasticPolicy; e != nil {
		e.MinReplicas, e.MaxReplicas = bounds(e.MinReplicas, e.MaxReplicas, j.Spec.PaddleReplicaSpecs[Worker])
	}
}

// bounds are those of an elastic policy: if one is missing the other applies,
// and without both the number of workers.
func bounds(least, most *int32, workers *ReplicaSpec) (*int32, *int32) {
	count := new(int32(1))
	if workers != nil && workers.Replicas != nil {
		count = workers.Replicas
	}
	for _, otherwise := range []*int32{most, least, count} {
		if least == nil && otherwise != nil {
			least = new(*otherwise)
		}
		if most == nil && least != nil {
			most = new(*least)
		}
	}
	return least, most
}

func (j *MPIJob) setDefaults() {
	s := &j.Spec
	if s.RunPolicy.CleanPodPolicy == nil {
		s.RunPolicy.CleanPodPolicy = s.CleanPodPolicy
	}
	if s.SlotsPerWorker == nil {
		s.SlotsPerWorker = new(int32(1))
	}
	if w := s.MPIReplicaSpecs[Worker]; w != nil && w.Replicas == nil {
		w.Replicas = new(int32(0))
	}
	if j.IsV2beta1() {
		s.setV2beta1Defaults()
	}
}

func (s *MPIJobSpec) setV2beta1Defaults() {
	if l := s.MPIReplicaSpecs[MPILauncher]; l != nil && l.RestartPolicy == "" {
		l.RestartPolicy = RestartOnFailure
	}
	if s.SSHAuthMountPath == "" {
		s.SSHAuthMountPath = DefaultSSHAuthMountPath
	}
	if s.LauncherCreationPolicy == "" {
		s.LauncherCreationPolicy = LauncherAtStartup
	}
}

func (*XGBoostJob) setDefaults() {}
func (*JAXJob) setDefaults()     {}
func (*MXJob) setDefaults()      {}
