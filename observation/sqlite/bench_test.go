// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"diwan.dev/diwan/observation"
)

// BenchmarkAppend measures batches of one point from so many writers at once,
// each waiting until its batch is on disk.
func BenchmarkAppend(b *testing.B) {
	for _, writers := range []int{1, 50} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			s, err := open(b.Context(), b.TempDir())
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			var left atomic.Int64
			left.Store(int64(b.N))
			b.ResetTimer()
			var group sync.WaitGroup
			for w := range writers {
				group.Go(func() {
					trial := observation.Trial{Namespace: "default", Name: fmt.Sprint("trial-", w)}
					for n := int64(0); left.Add(-1) >= 0; n++ {
						point := observation.Point{Time: time.Unix(n, 0), Metric: "loss", Value: "0.25"}
						if err := s.Append(b.Context(), trial, observation.Batch{Source: "main", From: n, To: n + 1, Points: []observation.Point{point}}); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			group.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
		})
	}
}

// BenchmarkPoints measures reading a trial of ten points among many others: the
// time must not grow with their number.
func BenchmarkPoints(b *testing.B) {
	for _, trials := range []int{10, 5000} {
		b.Run(fmt.Sprintf("trials=%d", trials), func(b *testing.B) {
			s, err := open(b.Context(), b.TempDir())
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			var group sync.WaitGroup
			for w := range trials {
				group.Go(func() {
					batch := observation.Batch{Source: "main", From: 0, To: 1}
					for n := range 10 {
						batch.Points = append(batch.Points, observation.Point{Time: time.Unix(int64(n), 0), Metric: "loss", Value: "0.25"})
					}
					if err := s.Append(b.Context(), observation.Trial{Namespace: "default", Name: fmt.Sprint("trial-", w)}, batch); err != nil {
						b.Error(err)
					}
				})
			}
			group.Wait()
			for n := 0; b.Loop(); n++ {
				points, err := s.Points(b.Context(), observation.Trial{Namespace: "default", Name: fmt.Sprint("trial-", n%trials)}, observation.Query{})
				if err != nil || len(points) != 10 {
					b.Fatalf("%d points, %v", len(points), err)
				}
			}
		})
	}
}
