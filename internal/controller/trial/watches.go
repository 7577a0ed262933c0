// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
)

// watches follows run objects. Jobs are watched from the start; another kind is
// when the first trial of that kind comes, since its definition may be
// installed at any time.
type watches struct {
	manager    manager.Manager
	controller controller.Controller

	mu      sync.Mutex
	watched map[schema.GroupVersionKind]bool
}

// ensure begins to watch a kind.
func (w *watches) ensure(kind schema.GroupVersionKind) error {
	if kind == jobKind() {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watched[kind] {
		return nil
	}
	if _, err := w.manager.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version); err != nil {
		return fmt.Errorf("cannot watch run objects of kind %s %s: %w", kind.GroupVersion(), kind.Kind, err)
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	err := w.controller.Watch(source.Kind(w.manager.GetCache(), object,
		handler.TypedEnqueueRequestForOwner[*unstructured.Unstructured](w.manager.GetScheme(), w.manager.GetRESTMapper(),
			&v1beta1.Trial{}, handler.OnlyControllerOwner())))
	if err != nil {
		return fmt.Errorf("cannot watch run objects of kind %s %s: %w", kind.GroupVersion(), kind.Kind, err)
	}
	if w.watched == nil {
		w.watched = map[schema.GroupVersionKind]bool{}
	}
	w.watched[kind] = true
	return nil
}
