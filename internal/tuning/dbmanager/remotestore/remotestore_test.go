// SPDX-License-Identifier: Apache-2.0

package remotestore_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"diwan.dev/diwan/internal/tuning/dbmanager"
	"diwan.dev/diwan/internal/tuning/dbmanager/remotestore"
	"diwan.dev/diwan/observation"
	"diwan.dev/diwan/observation/memory"
	"diwan.dev/diwan/observation/observationtest"
)

// anyone lets everyone do everything, but for trials that have ended.
type anyone struct{}

func (anyone) Trial(ctx context.Context, name string, verb dbmanager.Verb) (observation.Trial, error) {
	if name == "ended" && verb == dbmanager.Update {
		return observation.Trial{}, status.Error(codes.FailedPrecondition, "trial has ended")
	}
	namespace := ""
	if values := metadata.ValueFromIncomingContext(ctx, dbmanager.NamespaceKey); len(values) == 1 {
		namespace = values[0]
	}
	return observation.Trial{Namespace: namespace, Name: name}, nil
}

// serve returns a connection to a server of a store.
func serve(t *testing.T, store observation.Store, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	return serveConfig(t, dbmanager.DefaultConfig(store, anyone{}), options...)
}

func serveConfig(t *testing.T, config dbmanager.Config, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- dbmanager.New(config).Serve(ctx, l) }()
	conn, err := grpc.NewClient(l.Addr().String(), append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve() = %v", err)
		}
	})
	return conn
}

func TestIsAStore(t *testing.T) {
	t.Parallel()
	observationtest.Run(t, func(context.Context, string) (observation.Store, error) {
		return remotestore.New(serve(t, memory.New())), nil
	})
}

// TestAnswersAreLost has calls fail before and after they were carried out: a
// batch that is sent again, alone or as the begin of a longer one, is stored
// once.
func TestAnswersAreLost(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	lossy := func(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
		before, after := random.IntN(3) == 0, random.IntN(3) == 0
		if before {
			return status.Error(codes.Unavailable, "not sent")
		}
		err := invoke(ctx, method, request, reply, conn, options...)
		if err == nil && after {
			return status.Error(codes.Unavailable, "not answered")
		}
		return err
	}
	kept := memory.New()
	store := remotestore.New(serve(t, kept, grpc.WithUnaryInterceptor(lossy)))
	trial := observation.Trial{Namespace: "ns", Name: "t"}
	var waiting []observation.Point
	const steps = 500
	stored, failures := int64(0), 0
	for n := int64(1); n <= steps || stored < steps; n++ {
		if n <= steps {
			waiting = append(waiting, observation.Point{Time: time.Unix(n, 5).UTC(), Metric: "step", Value: strconv.FormatInt(n, 10)})
		}
		to := min(n, steps)
		err := store.Append(t.Context(), trial, observation.Batch{Source: "s", From: stored, To: to, Points: waiting})
		if err == nil {
			stored, waiting = to, nil
			continue
		}
		failures++
		if moved := (*observation.OffsetError)(nil); errors.As(err, &moved) {
			t.Fatalf("the caller is to know what the store forgot: %v", err)
		}
	}
	points, err := kept.Points(t.Context(), trial, observation.Query{})
	if err != nil || len(points) != steps {
		t.Fatalf("%d points, %v; want %d", len(points), err, steps)
	}
	for i, p := range points {
		if p.Value != strconv.Itoa(i+1) {
			t.Fatalf("point %d is %s", i, p.Value)
		}
	}
	if failures < steps/4 {
		t.Errorf("only %d calls failed", failures)
	}
}

func TestEnded(t *testing.T) {
	t.Parallel()
	store := remotestore.New(serve(t, memory.New()))
	err := store.Append(t.Context(), observation.Trial{Name: "ended"}, observation.Batch{Source: "s", To: 1})
	if !errors.Is(err, remotestore.ErrEnded) {
		t.Errorf("Append() = %v, want ErrEnded", err)
	}
}

// TestWarn wants a warning to reach who is to hear it, no longer than it may be,
// and none about a trial that has ended.
func TestWarn(t *testing.T) {
	t.Parallel()
	heard := map[observation.Trial]string{}
	config := dbmanager.DefaultConfig(memory.New(), anyone{})
	config.Warn = func(_ context.Context, t observation.Trial, message string) error {
		if message == "unheard" {
			return errors.New("the API server is away")
		}
		heard[t] = message
		return nil
	}
	store := remotestore.New(serveConfig(t, config))
	trial := observation.Trial{Namespace: "ns", Name: "trial"}
	for _, message := range []string{"", strings.Repeat("é", 600)} {
		if err := store.Warn(t.Context(), trial, message); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Warn(t.Context(), observation.Trial{Namespace: "ns", Name: "ended"}, "late"); !errors.Is(err, remotestore.ErrEnded) {
		t.Errorf("a warning about a trial that has ended gets %v", err)
	}
	if err := store.Warn(t.Context(), trial, "unheard"); err == nil || !strings.Contains(err.Error(), "the API server is away") {
		t.Errorf("a warning that is lost gets %v", err)
	}
	if got := heard[trial]; len(heard) != 1 || got != strings.Repeat("é", 512) {
		t.Errorf("heard are %q", heard)
	}
}
