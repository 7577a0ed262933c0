// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"diwan.dev/diwan/observation"
)

// Reconciler returns r with a span for each call, by the name of the kind.
func Reconciler(kind string, r reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, request reconcile.Request) (result reconcile.Result, err error) {
		ctx, end := Start(ctx, "reconcile "+kind, attribute.String("namespace", request.Namespace), attribute.String("name", request.Name))
		defer func() { end(err) }()
		return r.Reconcile(ctx, request)
	})
}

// Store returns s with a span for each call.
func Store(s observation.Store) observation.Store { return store{s} }

type store struct{ observation.Store }

func start(ctx context.Context, what string, t observation.Trial) (context.Context, func(error)) {
	return Start(ctx, "observation "+what, attribute.String("namespace", t.Namespace), attribute.String("trial", t.Name))
}

// Append implements [observation.Store].
func (s store) Append(ctx context.Context, t observation.Trial, b observation.Batch) (err error) {
	ctx, end := start(ctx, "append", t)
	defer func() { end(err) }()
	return s.Store.Append(ctx, t, b)
}

// Offset implements [observation.Store].
func (s store) Offset(ctx context.Context, t observation.Trial, source string) (at int64, err error) {
	ctx, end := start(ctx, "offset", t)
	defer func() { end(err) }()
	return s.Store.Offset(ctx, t, source)
}

// Points implements [observation.Store].
func (s store) Points(ctx context.Context, t observation.Trial, q observation.Query) (points []observation.Point, err error) {
	ctx, end := start(ctx, "points", t)
	defer func() { end(err) }()
	return s.Store.Points(ctx, t, q)
}

// DeleteSource implements [observation.Store].
func (s store) DeleteSource(ctx context.Context, t observation.Trial, source string) (err error) {
	ctx, end := start(ctx, "delete source", t)
	defer func() { end(err) }()
	return s.Store.DeleteSource(ctx, t, source)
}

// Delete implements [observation.Store].
func (s store) Delete(ctx context.Context, t observation.Trial) (err error) {
	ctx, end := start(ctx, "delete", t)
	defer func() { end(err) }()
	return s.Store.Delete(ctx, t)
}
