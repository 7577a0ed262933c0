// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"context"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
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
	"diwan.dev/diwan/internal/platform/reconciling"
)

// ownedKinds are the kinds of what jobs of some frameworks have beside Pods and
// Services, as far as every cluster knows them: no others are watched, so no right
// to them is needed.
func ownedKinds(frameworks []Framework) []schema.GroupVersionKind {
	kinds := []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim")}
	for _, f := range frameworks {
		for _, kind := range f.Owns() {
			if !slices.Contains(kinds, kind) {
				kinds = append(kinds, kind)
			}
		}
	}
	return kinds
}

// metadataOf are objects of some kinds of which only who owns them is read.
func metadataOf(kinds []schema.GroupVersionKind) []client.Object {
	objects := make([]client.Object, 0, len(kinds))
	for _, gvk := range kinds {
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(gvk)
		objects = append(objects, object)
	}
	return objects
}

// newOwnedCache is a cache of these and of launchers' Jobs, which has no others
// than those of jobs.
func newOwnedCache(mgr manager.Manager, kinds []schema.GroupVersionKind) (cache.Cache, error) {
	return reconciling.NewCache(mgr, v1.LabelJobName, append(metadataOf(kinds), &batchv1.Job{})...)
}

// deletions are the sources that call the reconciler when an object of a job was
// deleted, so that it is made again.
func (r *reconciler) deletions(owned cache.Cache, kinds []schema.GroupVersionKind) []source.Source {
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
	for _, kind := range metadataOf(kinds) {
		sources = append(sources, source.Kind(owned, kind, handler.Funcs{DeleteFunc: deleted}))
	}
	return sources
}
