// SPDX-License-Identifier: Apache-2.0

package observation_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"diwan.dev/diwan/observation"
)

// TestThin checks that a summary cannot tell thinned points from the whole.
func TestThin(t *testing.T) {
	t.Parallel()
	point := rapid.Custom(func(rt *rapid.T) observation.Point {
		return observation.Point{
			Time:   time.Unix(rapid.Int64Range(0, 4).Draw(rt, "time"), 0),
			Metric: rapid.SampledFrom([]string{"loss", "acc"}).Draw(rt, "metric"),
			Value:  rapid.SampledFrom([]string{"1", "2", "3", "-1e9", "inf", "NaN", "text"}).Draw(rt, "value"),
		}
	})
	rapid.Check(t, func(rt *rapid.T) {
		before := rapid.SliceOf(point).Draw(rt, "before")
		points := rapid.SliceOf(point).Draw(rt, "points")
		after := rapid.SliceOf(point).Draw(rt, "after")
		want := observation.Summarize(slices.Concat(before, points, after))
		thin := observation.Thin(slices.Clone(points))
		if diff := cmp.Diff(want, observation.Summarize(slices.Concat(before, thin, after))); diff != "" {
			rt.Errorf("summary of thinned points: -whole, +thinned:\n%s", diff)
		}
		if len(thin) > 6 {
			rt.Errorf("%d points left of 2 metrics: want at most 3 each", len(thin))
		}
	})
}
