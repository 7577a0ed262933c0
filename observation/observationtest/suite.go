// SPDX-License-Identifier: Apache-2.0

// Package observationtest holds every [observation.Store] to its contract.
//
// A package that implements the interface has one test that calls [Run], and,
// if its data outlives the process, another that calls [RunDurable]. Some
// tests are examples of one rule each; the others compare the store with a
// simple model over random sequences of calls, and kill processes.
package observationtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"diwan.dev/diwan/observation"
)

// Open opens the store in the existing directory dir. A durable store that is
// reopened in a directory finds what was stored there.
type Open func(ctx context.Context, dir string) (observation.Store, error)

// Run holds the stores that open returns to the contract.
func Run(t *testing.T, open Open) {
	for name, test := range map[string]func(*testing.T, observation.Store){
		"Unknown":      testUnknown,
		"Refusal":      testRefusal,
		"Invalid":      testInvalid,
		"Order":        testOrder,
		"Query":        testQuery,
		"Text":         testText,
		"DeleteSource": testDeleteSource,
		"Delete":       testDelete,
		"Cancelled":    testCancelled,
		"Closed":       testClosed,
		"Parallel":     testParallel,
		"Contended":    testContended,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, opened(t, open, t.TempDir()))
		})
	}
	t.Run("Model", func(t *testing.T) {
		t.Parallel()
		testModel(t, open, false)
	})
}

// opened returns a store that is closed at the end of the test.
func opened(t testing.TB, open Open, dir string) observation.Store {
	t.Helper()
	store, err := open(t.Context(), dir)
	if err != nil {
		t.Fatalf("cannot open store: %v", err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("Close(): %v", err)
		}
	})
	return store
}

// at returns a time some seconds after a fixed one.
func at(seconds float64) time.Time {
	return time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC).Add(time.Duration(seconds * float64(time.Second)))
}

func loss(seconds float64, value string) observation.Point {
	return observation.Point{Time: at(seconds), Metric: "loss", Value: value}
}

func mustAppend(t testing.TB, s observation.Store, trial observation.Trial, b observation.Batch) {
	t.Helper()
	if err := s.Append(t.Context(), trial, b); err != nil {
		t.Fatalf("Append(%s, %v): %v", trial, b, err)
	}
}

func wantPoints(t testing.TB, s observation.Store, trial observation.Trial, q observation.Query, want ...observation.Point) {
	t.Helper()
	got, err := s.Points(t.Context(), trial, q)
	if err != nil {
		t.Fatalf("Points(%s, %v): %v", trial, q, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Points(%s, %v): -want, +got:\n%s", trial, q, diff)
	}
}

func wantOffset(t testing.TB, s observation.Store, trial observation.Trial, source string, want int64) {
	t.Helper()
	got, err := s.Offset(t.Context(), trial, source)
	if err != nil {
		t.Fatalf("Offset(%s, %s): %v", trial, source, err)
	}
	if got != want {
		t.Errorf("Offset(%s, %s) = %d, want %d", trial, source, got, want)
	}
}

// testParallel appends from many goroutines, each to a trial of its own.
func testParallel(t *testing.T, s observation.Store) {
	const writers, batches = 20, 20
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			trial := observation.Trial{Namespace: "default", Name: fmt.Sprintf("trial-%d", w)}
			for b := range batches {
				batch := observation.Batch{Source: "main", From: int64(b), To: int64(b + 1), Points: []observation.Point{loss(float64(b), fmt.Sprint(w))}}
				if err := s.Append(t.Context(), trial, batch); err != nil {
					t.Errorf("Append: %v", err)
					return
				}
				points, err := s.Points(t.Context(), trial, observation.Query{})
				if err != nil || len(points) != b+1 {
					t.Errorf("after %d batches: %d points, %v", b+1, len(points), err)
				}
			}
		})
	}
	group.Wait()
}

// testContended has many goroutines append the same batches: each must be
// stored once, and the others told where the source is.
func testContended(t *testing.T, s observation.Store) {
	const writers, batches = 8, 20
	trial := observation.Trial{Namespace: "default", Name: "trial"}
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			for b := int64(0); b < batches; {
				batch := observation.Batch{Source: "main", From: b, To: b + 1, Points: []observation.Point{loss(float64(b), fmt.Sprint(b))}}
				err := s.Append(t.Context(), trial, batch)
				var offset *observation.OffsetError
				switch {
				case err == nil:
					b++
				case errors.As(err, &offset) && offset.Have > b:
					b = offset.Have
				default:
					t.Errorf("Append: %v", err)
					return
				}
			}
		})
	}
	group.Wait()
	var want []observation.Point
	for b := range batches {
		want = append(want, loss(float64(b), fmt.Sprint(b)))
	}
	wantPoints(t, s, trial, observation.Query{}, want...)
	wantOffset(t, s, trial, "main", batches)
}
