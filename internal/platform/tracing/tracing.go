// SPDX-License-Identifier: Apache-2.0

// Package tracing sends traces to an OpenTelemetry collector: a span for each
// reconcile, with child spans for each search and each access to the observation
// store.
//
// It is off unless OpenTelemetry's own variables name a collector,
// OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT; the others,
// such as OTEL_TRACES_SAMPLER, have their usual meaning. Traces go by gRPC.
//
// The tracer travels in the context, so that nothing holds one that does not
// make it: where a context has none, [Start] costs a look and makes nothing.
package tracing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Setup returns ctx with a tracer, if the environment names a collector. stop
// flushes pending spans and shuts down.
func Setup(ctx context.Context, service, version string) (_ context.Context, stop func(context.Context) error, err error) {
	if cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT")) == "" {
		return ctx, func(context.Context) error { return nil }, nil
	}
	protocol := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"), "grpc")
	if protocol != "grpc" {
		return nil, nil, fmt.Errorf("cannot send traces by %s, the value of OTEL_EXPORTER_OTLP_PROTOCOL: only grpc is supported; use the collector's port for it, usually 4317", protocol)
	}
	exporter, err := otlptracegrpc.New(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot send traces: %w", err)
	}
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", service), attribute.String("service.version", version)),
		resource.WithHost(), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, nil, fmt.Errorf("cannot send traces: %w", err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	return NewContext(ctx, provider.Tracer("diwan.dev/diwan")), provider.Shutdown, nil
}

type key struct{}

// NewContext returns ctx with a tracer.
func NewContext(ctx context.Context, tracer trace.Tracer) context.Context {
	return context.WithValue(ctx, key{}, tracer)
}

// Start begins a span, if ctx has a tracer. end ends it, with an error or nil.
func Start(ctx context.Context, name string, attributes ...attribute.KeyValue) (_ context.Context, end func(error)) {
	tracer, ok := ctx.Value(key{}).(trace.Tracer)
	if !ok {
		return ctx, func(error) {}
	}
	ctx, span := tracer.Start(ctx, name, trace.WithAttributes(attributes...))
	return ctx, func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}
}
