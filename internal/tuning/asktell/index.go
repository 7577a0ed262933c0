// SPDX-License-Identifier: Apache-2.0

package asktell

import (
	"context"
	"fmt"
	"sync"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/lease"
)

// Indexes of trials in the cache: those that a program may take by their
// experiment, and those that one has, or had, by their lease.
const (
	byFree  = "diwan.dev/free"
	byLease = "diwan.dev/lease"
)

// Index has a cache find trials. It is called before the cache starts.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	free := func(o client.Object) []string {
		t, ok := o.(*v1beta1.Trial)
		if !ok || !lease.Free(t) {
			return nil
		}
		return []string{t.Labels[v1beta1.LabelExperiment]}
	}
	leased := func(o client.Object) []string {
		t, ok := o.(*v1beta1.Trial)
		if !ok || t.Status.Lease == nil || t.Status.Lease.ID == "" {
			return nil
		}
		return []string{t.Status.Lease.ID}
	}
	if err := indexer.IndexField(ctx, &v1beta1.Trial{}, byFree, free); err != nil {
		return fmt.Errorf("cannot index trials: %w", err)
	}
	if err := indexer.IndexField(ctx, &v1beta1.Trial{}, byLease, leased); err != nil {
		return fmt.Errorf("cannot index trials: %w", err)
	}
	return nil
}

// bell wakes all who wait for something in the cache to change.
type bell struct {
	mu   sync.Mutex
	next chan struct{}
}

// wait returns a channel that is closed at the next change.
func (b *bell) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == nil {
		b.next = make(chan struct{})
	}
	return b.next
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next != nil {
		close(b.next)
		b.next = nil
	}
}

// follow rings when an experiment or a trial of a program changes, until stop.
func (b *bell) follow(ctx context.Context, c cache.Cache) (stop func(), err error) {
	var stops []func()
	stop = func() {
		for _, f := range stops {
			f()
		}
	}
	for _, o := range []client.Object{&v1beta1.Experiment{}, &v1beta1.Trial{}} {
		informer, err := c.GetInformer(ctx, o)
		if err != nil {
			stop()
			return nil, fmt.Errorf("cannot follow trials: %w", err)
		}
		handler, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: b.changed, UpdateFunc: func(_, o any) { b.changed(o) }, DeleteFunc: b.changed,
		})
		if err != nil {
			stop()
			return nil, fmt.Errorf("cannot follow trials: %w", err)
		}
		stops = append(stops, func() { _ = informer.RemoveEventHandler(handler) })
	}
	return stop, nil
}

func (b *bell) changed(o any) {
	if t, ok := o.(*v1beta1.Trial); ok && t.Spec.External == nil {
		return
	}
	b.ring()
}
