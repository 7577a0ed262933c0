// SPDX-License-Identifier: Apache-2.0

package observationtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"diwan.dev/diwan/observation"
)

func testUnknown(t *testing.T, s observation.Store) {
	trial := observation.Trial{Namespace: "default", Name: "nobody"}
	wantOffset(t, s, trial, "main", 0)
	wantPoints(t, s, trial, observation.Query{})
	if err := s.DeleteSource(t.Context(), trial, "main"); err != nil {
		t.Errorf("DeleteSource of an unknown source: %v", err)
	}
	if err := s.Delete(t.Context(), trial); err != nil {
		t.Errorf("Delete of an unknown trial: %v", err)
	}
}

func testRefusal(t *testing.T, s observation.Store) {
	trial := observation.Trial{Namespace: "default", Name: "a"}
	mustAppend(t, s, trial, observation.Batch{Source: "main", From: 0, To: 10, Points: []observation.Point{loss(1, "1")}})
	for _, from := range []int64{0, 5, 11} {
		b := observation.Batch{Source: "main", From: from, To: 20, Points: []observation.Point{loss(2, "2")}}
		err := s.Append(t.Context(), trial, b)
		var offset *observation.OffsetError
		if !errors.As(err, &offset) {
			t.Fatalf("Append from %d: got %v, want an OffsetError", from, err)
		}
		want := &observation.OffsetError{Trial: trial, Source: "main", Have: 10, Got: from}
		if diff := cmp.Diff(want, offset); diff != "" {
			t.Errorf("Append from %d: -want, +got:\n%s", from, diff)
		}
	}
	// A batch without points moves the offset, and one without bytes is fine.
	mustAppend(t, s, trial, observation.Batch{Source: "main", From: 10, To: 15})
	mustAppend(t, s, trial, observation.Batch{Source: "main", From: 15, To: 15})
	wantOffset(t, s, trial, "main", 15)
	wantOffset(t, s, trial, "other", 0)
	wantPoints(t, s, trial, observation.Query{}, loss(1, "1"))
}

func testInvalid(t *testing.T, s observation.Store) {
	trial := observation.Trial{Namespace: "default", Name: "a"}
	tests := map[string]struct {
		reason string
		batch  observation.Batch
	}{
		"NoSource":   {"A source needs a name.", observation.Batch{To: 1}},
		"Negative":   {"Offsets begin at 0.", observation.Batch{Source: "main", From: -1, To: 1}},
		"Backwards":  {"A batch does not end before it begins.", observation.Batch{Source: "main", From: 2, To: 1}},
		"NoBytes":    {"Points of no bytes could be stored twice.", observation.Batch{Source: "main", Points: []observation.Point{loss(1, "1")}}},
		"NoMetric":   {"A metric needs a name.", observation.Batch{Source: "main", To: 1, Points: []observation.Point{{Time: at(1), Value: "1"}}}},
		"ZeroByte":   {"PostgreSQL has no zero byte in text.", observation.Batch{Source: "main", To: 1, Points: []observation.Point{loss(1, "a\x00b")}}},
		"NotUTF8":    {"Text is UTF-8.", observation.Batch{Source: "main", To: 1, Points: []observation.Point{loss(1, "\xff")}}},
		"YearTooBig": {"Databases know years of four digits.", observation.Batch{Source: "main", To: 1, Points: []observation.Point{{Time: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), Metric: "loss", Value: "1"}}}},
	}
	for name, tc := range tests {
		if err := s.Append(t.Context(), trial, tc.batch); err == nil {
			t.Errorf("%s: %s Append accepted it", name, tc.reason)
		}
	}
	wantOffset(t, s, trial, "main", 0)
	wantPoints(t, s, trial, observation.Query{})
}

func testOrder(t *testing.T, s observation.Store) {
	trial := observation.Trial{Namespace: "default", Name: "a"}
	mustAppend(t, s, trial, observation.Batch{Source: "main", From: 0, To: 9, Points: []observation.Point{
		loss(3, "third"), loss(1, "first"), loss(2, "second, came first"),
	}})
	mustAppend(t, s, trial, observation.Batch{Source: "side", From: 0, To: 9, Points: []observation.Point{loss(2, "second, came second")}})
	mustAppend(t, s, trial, observation.Batch{Source: "main", From: 9, To: 12, Points: []observation.Point{
		loss(2, "second, came third"), {Metric: "loss", Value: "of the zero time"},
	}})
	wantPoints(t, s, trial, observation.Query{},
		observation.Point{Metric: "loss", Value: "of the zero time"},
		loss(1, "first"),
		loss(2, "second, came first"), loss(2, "second, came second"), loss(2, "second, came third"),
		loss(3, "third"))
}

func testQuery(t *testing.T, s observation.Store) {
	trial := observation.Trial{Namespace: "default", Name: "a"}
	acc := observation.Point{Time: at(2), Metric: "acc", Value: "0.5"}
	mustAppend(t, s, trial, observation.Batch{Source: "main", From: 0, To: 9, Points: []observation.Point{loss(1, "1"), acc, loss(2, "2"), loss(2.000000001, "3")}})
	mustAppend(t, s, observation.Trial{Namespace: "other", Name: "a"}, observation.Batch{Source: "main", From: 0, To: 1, Points: []observation.Point{loss(2, "9")}})
	mustAppend(t, s, observation.Trial{Namespace: "default", Name: "b"}, observation.Batch{Source: "main", From: 0, To: 1, Points: []observation.Point{loss(2, "8")}})
	tests := map[string]struct {
		reason string
		query  observation.Query
		want   []observation.Point
	}{
		"All":      {"The zero query selects everything of the trial, and of no other.", observation.Query{}, []observation.Point{loss(1, "1"), acc, loss(2, "2"), loss(2.000000001, "3")}},
		"Metric":   {"A metric selects its points.", observation.Query{Metric: "acc"}, []observation.Point{acc}},
		"Unknown":  {"An unknown metric has none.", observation.Query{Metric: "nope"}, nil},
		"Start":    {"Start is inclusive, to the nanosecond.", observation.Query{Start: at(2)}, []observation.Point{acc, loss(2, "2"), loss(2.000000001, "3")}},
		"End":      {"End is inclusive, to the nanosecond.", observation.Query{End: at(2)}, []observation.Point{loss(1, "1"), acc, loss(2, "2")}},
		"Instant":  {"Both together select an instant.", observation.Query{Start: at(2), End: at(2), Metric: "loss"}, []observation.Point{loss(2, "2")}},
		"Zone":     {"The zone of a bound does not matter.", observation.Query{End: at(1).In(time.FixedZone("east", 3600))}, []observation.Point{loss(1, "1")}},
		"Limit":    {"The limit keeps the first.", observation.Query{Limit: 2}, []observation.Point{loss(1, "1"), acc}},
		"LimitBig": {"A limit may be more than there is.", observation.Query{Limit: 9, Metric: "acc"}, []observation.Point{acc}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Log(tc.reason)
			wantPoints(t, s, trial, tc.query, tc.want...)
		})
	}
}

func testText(t *testing.T, s observation.Store) {
	trial := observation.Trial{Namespace: "default", Name: "a"}
	var want []observation.Point
	for i, value := range []string{"", "0.30", "NaN", "Genotype(normal=[('sep_conv_3x3', 1)])", "'; DROP TABLE observation_logs; --", "ديوان", "line\nbreak"} {
		want = append(want, observation.Point{Time: at(float64(i)), Metric: "métrique " + value, Value: value})
	}
	mustAppend(t, s, trial, observation.Batch{Source: "a/b c?d#é", From: 0, To: 1, Points: want})
	wantPoints(t, s, trial, observation.Query{}, want...)
	wantOffset(t, s, trial, "a/b c?d#é", 1)
}

func testDeleteSource(t *testing.T, s observation.Store) {
	trial, other := observation.Trial{Namespace: "default", Name: "a"}, observation.Trial{Namespace: "default", Name: "b"}
	mustAppend(t, s, trial, observation.Batch{Source: "main/0", From: 0, To: 5, Points: []observation.Point{loss(1, "1")}})
	mustAppend(t, s, trial, observation.Batch{Source: "main/1", From: 0, To: 6, Points: []observation.Point{loss(2, "2")}})
	mustAppend(t, s, other, observation.Batch{Source: "main/0", From: 0, To: 7, Points: []observation.Point{loss(3, "3")}})
	if err := s.DeleteSource(t.Context(), trial, "main/0"); err != nil {
		t.Fatalf("DeleteSource: %v", err)
	}
	wantOffset(t, s, trial, "main/0", 0)
	wantOffset(t, s, trial, "main/1", 6)
	wantPoints(t, s, trial, observation.Query{}, loss(2, "2"))
	wantPoints(t, s, other, observation.Query{}, loss(3, "3"))
	mustAppend(t, s, trial, observation.Batch{Source: "main/0", From: 0, To: 1, Points: []observation.Point{loss(4, "4")}})
	wantPoints(t, s, trial, observation.Query{}, loss(2, "2"), loss(4, "4"))
}

func testDelete(t *testing.T, s observation.Store) {
	trial, other := observation.Trial{Namespace: "default", Name: "a"}, observation.Trial{Namespace: "elsewhere", Name: "a"}
	for _, each := range []observation.Trial{trial, other} {
		mustAppend(t, s, each, observation.Batch{Source: "main", From: 0, To: 5, Points: []observation.Point{loss(1, "1")}})
	}
	if err := s.Delete(t.Context(), trial); err != nil {
		t.Fatalf("Delete: %v", err)
	}
	wantOffset(t, s, trial, "main", 0)
	wantPoints(t, s, trial, observation.Query{})
	wantOffset(t, s, other, "main", 5)
	wantPoints(t, s, other, observation.Query{}, loss(1, "1"))
}

func testCancelled(t *testing.T, s observation.Store) {
	trial := observation.Trial{Namespace: "default", Name: "a"}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Append(ctx, trial, observation.Batch{Source: "main", From: 0, To: 5}); !errors.Is(err, context.Canceled) {
		t.Errorf("Append with a cancelled context: got %v, want context.Canceled", err)
	}
	if _, err := s.Points(ctx, trial, observation.Query{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Points with a cancelled context: got %v, want context.Canceled", err)
	}
	wantOffset(t, s, trial, "main", 0)
}

func testClosed(t *testing.T, s observation.Store) {
	trial := observation.Trial{Namespace: "default", Name: "a"}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatalf("Close: %v", err)
		}
	}
	_, offsetErr := s.Offset(t.Context(), trial, "main")
	_, pointsErr := s.Points(t.Context(), trial, observation.Query{})
	for name, err := range map[string]error{
		"Append":       s.Append(t.Context(), trial, observation.Batch{Source: "main", From: 0, To: 5}),
		"Offset":       offsetErr,
		"Points":       pointsErr,
		"DeleteSource": s.DeleteSource(t.Context(), trial, "main"),
		"Delete":       s.Delete(t.Context(), trial),
	} {
		if !errors.Is(err, observation.ErrClosed) {
			t.Errorf("%s after Close: got %v, want ErrClosed", name, err)
		}
	}
}
