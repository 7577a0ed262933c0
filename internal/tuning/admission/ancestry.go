// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
)

// generations bounds the way from a Pod up to its trial: a TrainJob's Pod has a
// Job, a JobSet and the TrainJob in between.
const generations = 8

// What controls an object is remembered for so long, of so many objects. A job
// makes all of its Pods within moments, and what is controlled is so from the start.
const (
	memory     = 10 * time.Second
	remembered = 4096
)

// Ancestry finds the trial above an object. Its methods may be called from several
// goroutines, and of nil: then no object belongs to a trial.
type Ancestry struct {
	reader      client.Reader
	controllers *cache.LRUExpireCache // *metav1.OwnerReference, nil for none, by the UID of what it controls
}

// NewAncestry reads trials, and of other objects the metadata.
func NewAncestry(reader client.Reader, clock clock.Clock) *Ancestry {
	return &Ancestry{reader, cache.NewLRUExpireCacheWithClock(remembered, clock)}
}

// Trial returns the trial that controls the object, at whatever distance; nil
// for none. An ancestor that is gone, may not be read, or has another UID than the
// reference to it ends the way: who does not know the UID learns nothing.
func (a *Ancestry) Trial(ctx context.Context, namespace string, object metav1.Object) (*v1beta1.Trial, error) {
	if a == nil {
		return nil, nil
	}
	owner := metav1.GetControllerOf(object)
	for range generations {
		if owner == nil {
			return nil, nil
		}
		gv, err := schema.ParseGroupVersion(owner.APIVersion)
		if err != nil {
			return nil, nil
		}
		if owner.Kind == v1beta1.TrialKind && gv.Group == v1beta1.Group {
			trial := &v1beta1.Trial{}
			if found, err := a.get(ctx, namespace, owner, trial); !found || err != nil {
				return nil, err
			}
			return trial, nil
		}
		if known, ok := a.controllers.Get(owner.UID); ok {
			owner = known.(*metav1.OwnerReference)
			continue
		}
		next := &metav1.PartialObjectMetadata{}
		next.SetGroupVersionKind(gv.WithKind(owner.Kind))
		if found, err := a.get(ctx, namespace, owner, next); !found || err != nil {
			return nil, err
		}
		owner = metav1.GetControllerOf(next)
		a.controllers.Add(next.UID, owner, memory)
	}
	return nil, nil
}

// get reads an owner and reports whether it is there.
func (a *Ancestry) get(ctx context.Context, namespace string, owner *metav1.OwnerReference, into client.Object) (bool, error) {
	err := a.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: owner.Name}, into)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err), meta.IsNoMatchError(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("cannot read %s %s/%s, which owns the object: %w", owner.Kind, namespace, owner.Name, err)
	}
	return into.GetUID() == owner.UID, nil
}
