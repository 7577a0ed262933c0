// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"context"
	"maps"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	watched "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
	"diwan.dev/diwan/internal/checkpoint"
	"diwan.dev/diwan/internal/controller/children"
)

// ownedKinds are the kinds of what jobs have beside Pods and Services: those that
// every cluster knows, and the groups of gangs. Of them only who owns them is
// read.
func ownedKinds(groups []schema.GroupVersionKind) []client.Object {
	var kinds []client.Object
	for _, gvk := range append([]schema.GroupVersionKind{
		corev1.SchemeGroupVersion.WithKind("ConfigMap"),
		corev1.SchemeGroupVersion.WithKind("ServiceAccount"),
		corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"),
		rbacv1.SchemeGroupVersion.WithKind("Role"),
		rbacv1.SchemeGroupVersion.WithKind("RoleBinding"),
		autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"),
	}, groups...) {
		kind := &metav1.PartialObjectMetadata{}
		kind.SetGroupVersionKind(gvk)
		kinds = append(kinds, kind)
	}
	return kinds
}

// newOwnedCache is a cache of these and of launchers' Jobs, which has no others
// than those of jobs.
func newOwnedCache(mgr manager.Manager, groups []schema.GroupVersionKind) (cache.Cache, error) {
	return children.NewCache(mgr, v1.LabelJobName, append(ownedKinds(groups), &batchv1.Job{})...)
}

// deletions are the sources that call the reconciler when an object of a job was
// deleted, so that it is made again.
func (r *reconciler) deletions(owned cache.Cache, groups []schema.GroupVersionKind) []source.Source {
	kind := v1.GroupVersion.WithKind(r.framework.New().Traits().Kind).GroupKind()
	deleted := func(_ context.Context, e watched.DeleteEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		owner := metav1.GetControllerOf(e.Object)
		if owner == nil || schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind() != kind {
			return
		}
		job := types.NamespacedName{Namespace: e.Object.GetNamespace(), Name: owner.Name}
		r.ensured.forget(job)
		queue.Add(reconcile.Request{NamespacedName: job})
	}
	var sources []source.Source
	for _, kind := range ownedKinds(groups) {
		sources = append(sources, source.Kind(owned, kind, handler.Funcs{DeleteFunc: deleted}))
	}
	return sources
}

// objects are what a job needs beside Pods and Services: its checkpoints, and what
// its framework needs.
func objects(f Framework, job v1.Job, pods map[Replica]*corev1.Pod) []client.Object {
	all := f.Objects(job, pods)
	if c := job.Policy().Checkpoint; c != nil {
		claim := checkpoint.Claim(job.GetName(), c)
		claim.ObjectMeta = metadata(job, claim.Name, nil)
		all = append(all, claim)
	}
	return all
}

// label has an object bear the labels of its job, by which it is watched.
func label(job v1.Job, obj client.Object) {
	all := map[string]string{}
	maps.Copy(all, obj.GetLabels())
	maps.Copy(all, jobLabels(job))
	obj.SetLabels(all)
}
