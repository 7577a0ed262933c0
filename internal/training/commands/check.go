// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"cmp"
	"context"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "diwan.dev/diwan/api/jobset/v1alpha2"
	v1 "diwan.dev/diwan/api/kubeflow/v1"
	"diwan.dev/diwan/api/kubeflow/v2beta1"
	trainer "diwan.dev/diwan/api/trainer/v1alpha1"
	"diwan.dev/diwan/internal/platform/cli/check"
	"diwan.dev/diwan/internal/training/sshkey"
	"diwan.dev/diwan/internal/training/trainingruntime"
)

// checked are the kinds of training whose Pods are not just those of their templates.
func checked() []check.Kind {
	kinds := []check.Kind{
		{GroupVersionKind: trainer.GroupVersion.WithKind(trainer.TrainJobKind), Pods: podsOfTrainJob, Needs: runtimeOf},
		{GroupVersionKind: trainer.GroupVersion.WithKind(trainer.TrainingRuntimeKind), Pods: none}, // its jobs say what runs
		{GroupVersionKind: trainer.GroupVersion.WithKind(trainer.ClusterTrainingRuntimeKind), Pods: none},
		{GroupVersionKind: v2beta1.GroupVersion.WithKind("MPIJob"), Pods: podsWithKeys},
	}
	for _, job := range v1.Jobs() {
		kinds = append(kinds, check.Kind{GroupVersionKind: v1.GroupVersion.WithKind(job.Traits().Kind), Pods: podsOfJob})
	}
	return kinds
}

func none(context.Context, *unstructured.Unstructured, check.Found) ([]check.PodSet, error) {
	return nil, nil
}

// podsOfJob are the replicas of a training job, which run together unless it is elastic.
func podsOfJob(_ context.Context, job *unstructured.Unstructured, _ check.Found) ([]check.PodSet, error) {
	_, elastic, _ := unstructured.NestedMap(job.Object, "spec", "elasticPolicy")
	return check.Templates(job, !elastic)
}

// podsWithKeys are those of an MPIJob whose Pods reach each other by ssh.
func podsWithKeys(ctx context.Context, job *unstructured.Unstructured, found check.Found) ([]check.PodSet, error) {
	pods, err := podsOfJob(ctx, job, found)
	for i := range pods {
		addKeys(pods[i].Pod)
	}
	return pods, err
}

// addKeys gives a Pod the keys for ssh that its controller adds: with them it is given ssh and sshd.
func addKeys(pod *corev1.Pod) {
	const name = "check-ssh"
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: name, Optional: ptr.To(true), Items: []corev1.KeyToPath{{Key: sshkey.Private, Path: sshkey.PrivateFile}},
	}}})
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/" + name})
	}
}

// podsOfTrainJob are those of its JobSet.
func podsOfTrainJob(ctx context.Context, object *unstructured.Unstructured, found check.Found) ([]check.PodSet, error) {
	job := &trainer.TrainJob{}
	if err := check.Convert(object, job); err != nil {
		return nil, err
	}
	spec, err := specOf(ctx, job, found)
	if err != nil {
		return nil, err
	}
	job.Name = cmp.Or(job.Name, "trial")
	objects, err := trainingruntime.Render(job, spec)
	if err != nil {
		return nil, err
	}
	made := []string{objects.SSHKeys}
	for _, o := range []client.Object{objects.HostFile, objects.Checkpoint, objects.Authorities} {
		if !reflect.ValueOf(o).IsNil() {
			made = append(made, o.GetName())
		}
	}
	var pods []check.PodSet
	for _, r := range objects.JobSet.Spec.ReplicatedJobs {
		set := podsOfReplicatedJob(job.Namespace, r)
		set.Made = made
		for _, policy := range objects.JobSet.Spec.VolumeClaimPolicies {
			for _, claim := range policy.Templates { // the JobSet's controller adds the volume
				set.Pod.Spec.Volumes = append(set.Pod.Spec.Volumes, corev1.Volume{Name: claim.Name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
			}
		}
		pods = append(pods, set)
	}
	return pods, nil
}

func podsOfReplicatedJob(namespace string, r jobset.ReplicatedJob) check.PodSet {
	template := r.Template.Spec.Template
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace = namespace
	count := int(ptr.Deref(r.Replicas, 1)) * int(ptr.Deref(r.Template.Spec.Parallelism, 1))
	if r.Name == trainer.DatasetInitializer || r.Name == trainer.ModelInitializer {
		count = 0 // they end before the others begin
	}
	return check.PodSet{Where: r.Name, Pod: pod, Count: count}
}

// specOf is the spec of the runtime to which a job refers.
func specOf(ctx context.Context, job *trainer.TrainJob, found check.Found) (*trainer.TrainingRuntimeSpec, error) {
	ref := referenceOf(job)
	runtime := trainingruntime.New(job)
	err := found.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, runtime)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("cannot find the runtime: there is no %s %s; `diwan kubectl get %ss` lists the existing ones", ref.Kind, ref.Name, ref.Kind)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read %s %s: %w", ref.Kind, ref.Name, err)
	}
	return trainingruntime.SpecOf(runtime), nil
}

// referenceOf names the runtime of a job: one for the cluster, unless it says otherwise.
func referenceOf(job *trainer.TrainJob) check.Reference {
	if job.Spec.RuntimeRef.Is(trainer.TrainingRuntimeKind) {
		return check.Reference{Kind: trainer.TrainingRuntimeKind, Namespace: job.Namespace, Name: job.Spec.RuntimeRef.Name}
	}
	return check.Reference{Kind: trainer.ClusterTrainingRuntimeKind, Name: job.Spec.RuntimeRef.Name}
}

// runtimeOf is the runtime that admission looks at.
func runtimeOf(object *unstructured.Unstructured) []check.Reference {
	job := &trainer.TrainJob{}
	job.Namespace = object.GetNamespace()
	job.Spec.RuntimeRef.Name, _, _ = unstructured.NestedString(object.Object, "spec", "runtimeRef", "name")
	if kind, named, _ := unstructured.NestedString(object.Object, "spec", "runtimeRef", "kind"); named {
		job.Spec.RuntimeRef.Kind = &kind
	}
	return []check.Reference{referenceOf(job)}
}
