// SPDX-License-Identifier: Apache-2.0

// Package trainingjobtest is the conformance suite for frameworks of the
// training job engine.
package trainingjobtest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
	"diwan.dev/diwan/internal/training/trainingjob"
)

// Conform holds a framework to its interface, for every choice of its replica
// types that makes a valid job.
func Conform(t *testing.T, f trainingjob.Framework) {
	t.Helper()
	kinds := f.New().Traits().Types
	valid := 0
	for chosen := range 1 << len(kinds) {
		job := jobOf(f, chosen)
		if len(v1.Validate(job)) > 0 {
			continue
		}
		valid++
		v1.SetDefaults(job)
		t.Run(fmt.Sprintf("%s/%b", job.Traits().Kind, chosen), func(t *testing.T) {
			t.Parallel()
			conform(t, f, job)
		})
	}
	if valid == 0 {
		t.Errorf("no choice of %v makes a valid job", kinds)
	}
}

// jobOf makes a job of those replica types whose bit is set: one of the first
// types of a kind, which may be masters, two of workers.
func jobOf(f trainingjob.Framework, chosen int) v1.Job {
	job := f.New()
	job.SetNamespace("ns")
	job.SetName("j")
	if mx, ok := job.(*v1.MXJob); ok {
		mx.Spec.JobMode = v1.MXTrain
	}
	replicas := map[v1.ReplicaType]*v1.ReplicaSpec{}
	for i, kind := range job.Traits().Types {
		if chosen&(1<<i) == 0 {
			continue
		}
		count := int32(1)
		if kind == v1.Worker {
			count = 2
		}
		replicas[kind] = &v1.ReplicaSpec{Replicas: ptr.To(count), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: job.Traits().Container, Image: "i", Env: []corev1.EnvVar{{Name: "FIRST", Value: "the user's"}}},
			{Name: "other", Image: "i"},
		}}}}
	}
	setReplicas(job, replicas)
	return job
}

func setReplicas(job v1.Job, replicas map[v1.ReplicaType]*v1.ReplicaSpec) {
	switch j := job.(type) {
	case *v1.TFJob:
		j.Spec.TFReplicaSpecs = replicas
	case *v1.PyTorchJob:
		j.Spec.PyTorchReplicaSpecs = replicas
	case *v1.MPIJob:
		j.Spec.MPIReplicaSpecs = replicas
	case *v1.XGBoostJob:
		j.Spec.XGBReplicaSpecs = replicas
	case *v1.PaddleJob:
		j.Spec.PaddleReplicaSpecs = replicas
	case *v1.JAXJob:
		j.Spec.JAXReplicaSpecs = replicas
	case *v1.MXJob:
		j.Spec.MXReplicaSpecs = replicas
	}
}

func conform(t *testing.T, f trainingjob.Framework, job v1.Job) {
	before := job.DeepCopyObject()
	if !slices.Contains(job.Traits().Types, f.Lead(job)) {
		t.Errorf("Lead is %q, which is none of %v", f.Lead(job), job.Traits().Types)
	}
	if f.Done(job, nil) {
		t.Error("a job without Pods is done")
	}
	masters, failed, all := 0, map[trainingjob.Replica]*corev1.Pod{}, map[trainingjob.Replica]*corev1.Pod{}
	for kind, spec := range job.Replicas() {
		for i := range int(*spec.Replicas) {
			r := trainingjob.Replica{Type: kind, Index: i}
			if f.Master(job, r) {
				masters++
			}
			failed[r] = &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed}}
			all[r] = &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}
			connects(t, f, job, r)
		}
	}
	if f.Done(job, failed) {
		t.Error("a job all of whose replicas failed is done")
	}
	if job.Replicas()[f.Lead(job)] != nil && !f.Done(job, all) {
		t.Error("a job all of whose replicas succeeded is not done")
	}
	if masters > 1 {
		t.Errorf("%d replicas are the master", masters)
	}
	for _, obj := range f.Objects(job, all) {
		owner := obj.GetOwnerReferences()
		if obj.GetNamespace() != "ns" || len(owner) != 1 || owner[0].Name != "j" || owner[0].Kind != job.Traits().Kind {
			t.Errorf("%T %s does not belong to the job", obj, obj.GetName())
		}
	}
	if diff := cmp.Diff(before, job.DeepCopyObject()); diff != "" {
		t.Errorf("the framework changes the job (-before +after)\n%s", diff)
	}
}

// connects holds that a replica is told the same each time, after what the user
// says.
func connects(t *testing.T, f trainingjob.Framework, job v1.Job, r trainingjob.Replica) {
	t.Helper()
	once, again := job.Replicas()[r.Type].Template.DeepCopy(), job.Replicas()[r.Type].Template.DeepCopy()
	f.Connect(job, r, once)
	f.Connect(job, r, again)
	if diff := cmp.Diff(once, again); diff != "" {
		t.Errorf("%v is not told the same each time (-once +again)\n%s", r, diff)
	}
	if env := once.Spec.Containers[0].Env; len(env) == 0 || env[0].Name != "FIRST" {
		t.Errorf("%v is told %v, want the user's variables first", r, env)
	}
	seen := map[string]bool{}
	for _, e := range once.Spec.Containers[0].Env {
		if seen[e.Name] {
			t.Errorf("%v is told %s twice", r, e.Name)
		}
		seen[e.Name] = true
	}
}
