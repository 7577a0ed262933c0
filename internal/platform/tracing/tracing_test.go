// SPDX-License-Identifier: Apache-2.0

package tracing_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"diwan.dev/diwan/internal/platform/tracing"
	"diwan.dev/diwan/observation"
	"diwan.dev/diwan/observation/memory"
)

// receiver is an OTLP collector.
type receiver struct {
	collector.UnimplementedTraceServiceServer
	mu   sync.Mutex
	got  []*spans.Span
	from map[string]string // the resource's texts
}

// Export implements the service.
func (r *receiver) Export(_ context.Context, request *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, resource := range request.GetResourceSpans() {
		for _, a := range resource.GetResource().GetAttributes() {
			r.from[a.GetKey()] = a.GetValue().GetStringValue()
		}
		for _, scope := range resource.GetScopeSpans() {
			r.got = append(r.got, scope.GetSpans()...)
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// TestTraces sends the trace of a reconcile that uses the store and fails.
func TestTraces(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{from: map[string]string{}}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, r)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() { server.Stop(); serving.Wait() })
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+listener.Addr().String())

	ctx, stop, err := tracing.Setup(t.Context(), "diwan-operator", "v1")
	if err != nil {
		t.Fatal(err)
	}
	store := tracing.Store(memory.New())
	defer store.Close()
	trial := observation.Trial{Namespace: "n", Name: "x"}
	reconciler := tracing.Reconciler("Trial", reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
		_, err := store.Points(ctx, trial, observation.Query{})
		return reconcile.Result{}, errors.Join(err, errors.New("it went wrong"))
	}))
	if _, err := reconciler.Reconcile(ctx, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "n", Name: "x"}}); err == nil {
		t.Error("the error is lost")
	}
	if err := stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.got) != 2 || r.got[0].GetName() != "observation points" || r.got[1].GetName() != "reconcile Trial" {
		t.Fatalf("got %v, want the use of the store in the reconcile", r.got)
	}
	if string(r.got[0].GetParentSpanId()) != string(r.got[1].GetSpanId()) {
		t.Error("the use of the store is no part of the reconcile")
	}
	if s := r.got[1].GetStatus(); s.GetCode() != spans.Status_STATUS_CODE_ERROR || !strings.Contains(s.GetMessage(), "it went wrong") {
		t.Errorf("the reconcile's status is %v", s)
	}
	if r.from["service.name"] != "diwan-operator" || r.from["service.version"] != "v1" {
		t.Errorf("the traces come from %v", r.from)
	}
}

// TestOff wants nothing to be made where no collector is named, and a protocol
// that is not spoken to be refused.
func TestOff(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "")
	ctx, stop, err := tracing.Setup(t.Context(), "s", "v")
	if err != nil || ctx != t.Context() {
		t.Errorf("got another context (%v)", err)
	}
	if err := stop(ctx); err != nil {
		t.Error(err)
	}
	if n := testing.AllocsPerRun(100, func() {
		_, end := tracing.Start(ctx, "x")
		end(nil)
	}); n > 0 {
		t.Errorf("a span that is off takes %v allocations", n)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
	if _, _, err := tracing.Setup(t.Context(), "s", "v"); err == nil || !strings.Contains(err.Error(), "4317") {
		t.Errorf("got %v, want an error with the remedy", err)
	}
}
