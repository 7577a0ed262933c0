// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/platform/reconciling"
)

// watches follows run objects. Jobs are watched from the start; another kind is
// when the first trial of that kind comes, since its definition may be
// installed at any time.
type watches struct {
	manager    manager.Manager
	controller controller.Controller
	clock      clock.PassiveClock
	// cache holds the run objects of all kinds but Job, and no other objects of
	// these kinds.
	cache cache.Cache

	mu      sync.Mutex
	watched map[schema.GroupVersionKind]bool
	quota   *bool // whether quotas are watched or may not be; nil while nobody asked
	blocked map[schema.GroupVersionKind]finding
}

// finding is what kept a kind from being watched, and until when to believe
// that it still does.
type finding struct {
	obstacle *obstacle
	until    time.Time
}

// believe is how long a finding holds for all trials of its kind.
const believe = time.Second

// newWatches makes the cache, which starts with the manager.
func newWatches(mgr manager.Manager, c clock.PassiveClock) (*watches, error) {
	runs, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient:           mgr.GetHTTPClient(),
		Scheme:               mgr.GetScheme(),
		Mapper:               mgr.GetRESTMapper(),
		DefaultLabelSelector: reconciling.HasLabel(v1beta1.LabelTrial),
		DefaultTransform:     Slim,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot create a cache of run objects: %w", err)
	}
	if err := mgr.Add(runs); err != nil {
		return nil, fmt.Errorf("cannot add a cache of run objects: %w", err)
	}
	return &watches{
		manager: mgr, cache: runs, clock: c,
		watched: map[schema.GroupVersionKind]bool{}, blocked: map[schema.GroupVersionKind]finding{},
	}, nil
}

// covers reports whether a kind is watched.
func (w *watches) covers(kind schema.GroupVersionKind) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return kind == jobKind() || w.watched[kind]
}

// ensure starts watching a kind, or returns the obstacle.
func (w *watches) ensure(ctx context.Context, kind schema.GroupVersionKind) (*obstacle, error) {
	if kind == jobKind() {
		return nil, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watched[kind] {
		return nil, nil
	}
	if found, ok := w.blocked[kind]; ok && w.clock.Now().Before(found.until) {
		return found.obstacle, nil
	}
	blocked, err := w.look(ctx, kind)
	if err != nil {
		return nil, fmt.Errorf("cannot watch run objects of kind %s %s: %w", kind.GroupVersion(), kind.Kind, err)
	}
	if blocked != nil {
		w.blocked[kind] = finding{blocked, w.clock.Now().Add(believe)}
		return blocked, nil
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	err = w.controller.Watch(source.Kind(w.cache, object,
		handler.TypedEnqueueRequestForOwner[*unstructured.Unstructured](w.manager.GetScheme(), w.manager.GetRESTMapper(),
			&v1beta1.Trial{}, handler.OnlyControllerOwner())))
	if err != nil {
		return nil, fmt.Errorf("cannot watch run objects of kind %s %s: %w", kind.GroupVersion(), kind.Kind, err)
	}
	w.watched[kind] = true
	delete(w.blocked, kind)
	return nil, nil
}

// verbs are the verbs needed for run objects.
var verbs = []string{"get", "list", "watch", "create", "patch", "delete"}

// look asks the API server whether it serves a kind, and to whom: a watch that
// is not permitted would never answer.
func (w *watches) look(ctx context.Context, kind schema.GroupVersionKind) (*obstacle, error) {
	mapping, err := w.manager.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return kindMissing(kind), nil
	}
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return notNamespaced(kind), nil
	}
	allowed, err := w.allowed(ctx, mapping.Resource, verbs...)
	if err != nil {
		return nil, err
	}
	if !allowed {
		return permissionMissing(mapping.Resource.GroupResource()), nil
	}
	return nil, nil
}

// allowed asks whether all of some verbs are permitted in all namespaces.
func (w *watches) allowed(ctx context.Context, resource schema.GroupVersionResource, verbs ...string) (bool, error) {
	for _, verb := range verbs {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Group: resource.Group, Version: resource.Version, Resource: resource.Resource, Verb: verb,
			},
		}}
		if err := w.manager.GetClient().Create(ctx, review); err != nil {
			return false, fmt.Errorf("cannot ask for permissions: %w", err)
		}
		if !review.Status.Allowed {
			return false, nil
		}
	}
	return true, nil
}

// quotas starts watching ResourceQuotas, and reports whether that is
// permitted: only needed once a trial may have hit one.
func (w *watches) quotas(ctx context.Context, handler handler.TypedEventHandler[*corev1.ResourceQuota, reconcile.Request]) (watched bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.quota != nil {
		return *w.quota, nil
	}
	allowed, err := w.allowed(ctx, corev1.SchemeGroupVersion.WithResource("resourcequotas"), "list", "watch")
	if err != nil {
		return false, err
	}
	if allowed {
		if err := w.controller.Watch(source.Kind(w.manager.GetCache(), &corev1.ResourceQuota{}, handler)); err != nil {
			return false, fmt.Errorf("cannot watch quotas: %w", err)
		}
	}
	w.quota = &allowed
	return allowed, nil
}

func kindMissing(kind schema.GroupVersionKind) *obstacle {
	return &obstacle{v1beta1.ReasonRunKindMissing, fmt.Sprintf(
		"The cluster has no kind %s %s: install the CRD that defines it", kind.GroupVersion(), kind.Kind)}
}

func notNamespaced(kind schema.GroupVersionKind) *obstacle {
	return &obstacle{v1beta1.ReasonRunPermissionMissing, fmt.Sprintf(
		"Kind %s %s is cluster-scoped, but a trial's objects are in its experiment's namespace: use another kind", kind.GroupVersion(), kind.Kind)}
}

func permissionMissing(resource schema.GroupResource) *obstacle {
	return &obstacle{v1beta1.ReasonRunPermissionMissing, fmt.Sprintf(
		"The operator lacks permission for %s: add to its role the rule {apiGroups: [%q], resources: [%s], verbs: [%s]}",
		resource, resource.Group, resource.Resource, strings.Join(verbs, ", "))}
}
