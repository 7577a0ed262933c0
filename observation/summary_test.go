// SPDX-License-Identifier: Apache-2.0

package observation_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"diwan.dev/diwan/observation"
)

func TestSummarize(t *testing.T) {
	t.Parallel()
	at := func(second int) time.Time { return time.Date(2026, 1, 2, 3, 4, second, 0, time.UTC) }
	tests := map[string]struct {
		reason string
		points []observation.Point
		want   map[string]observation.Summary
	}{
		"Empty": {
			reason: "No point, no summary: the caller knows which metrics it waits for.",
			want:   map[string]observation.Summary{},
		},
		"Numbers": {
			reason: "Values are compared as numbers and returned as they were written.",
			points: []observation.Point{{at(1), "loss", "1e1"}, {at(2), "loss", "9.50"}, {at(3), "loss", "0x1p3"}, {at(4), "loss", "+9"}},
			want:   map[string]observation.Summary{"loss": {Min: "0x1p3", Max: "1e1", Latest: "+9"}},
		},
		"LatestByTime": {
			reason: "The latest value is the one with the latest time, whatever arrived last.",
			points: []observation.Point{{at(2), "loss", "2"}, {at(1), "loss", "1"}},
			want:   map[string]observation.Summary{"loss": {Min: "1", Max: "2", Latest: "2"}},
		},
		"Tie": {
			reason: "Of two values of one time, the one that arrived last is the latest.",
			points: []observation.Point{{at(1), "loss", "1"}, {at(1), "loss", "2"}},
			want:   map[string]observation.Summary{"loss": {Min: "1", Max: "2", Latest: "2"}},
		},
		"ZeroTime": {
			reason: "Katib's collectors report the zero time; then the order of arrival decides.",
			points: []observation.Point{{time.Time{}, "loss", "3"}, {time.Time{}, "loss", "2"}},
			want:   map[string]observation.Summary{"loss": {Min: "2", Max: "3", Latest: "2"}},
		},
		"Text": {
			reason: "An architecture is no number: it has a latest value alone.",
			points: []observation.Point{{at(1), "genotype", "Genotype(a)"}, {at(2), "genotype", "Genotype(b)"}},
			want:   map[string]observation.Summary{"genotype": {Min: "unavailable", Max: "unavailable", Latest: "Genotype(b)"}},
		},
		"NaN": {
			reason: "NaN is neither least nor greatest, but a diverged run's latest value is NaN.",
			points: []observation.Point{{at(1), "loss", "nan"}, {at(2), "loss", "1"}, {at(3), "loss", "NaN"}},
			want:   map[string]observation.Summary{"loss": {Min: "1", Max: "1", Latest: "NaN"}},
		},
		"Infinite": {
			reason: "Infinities are numbers.",
			points: []observation.Point{{at(1), "loss", "inf"}, {at(2), "loss", "1"}},
			want:   map[string]observation.Summary{"loss": {Min: "1", Max: "inf", Latest: "1"}},
		},
		"Several": {
			reason: "Each metric has a summary of its own.",
			points: []observation.Point{{at(1), "loss", "1"}, {at(1), "acc", "0.5"}, {at(2), "loss", "2"}},
			want: map[string]observation.Summary{
				"loss": {Min: "1", Max: "2", Latest: "2"},
				"acc":  {Min: "0.5", Max: "0.5", Latest: "0.5"},
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, observation.Summarize(tc.points)); diff != "" {
				t.Errorf("%s\nSummarize(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
