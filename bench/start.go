// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"diwan.dev/diwan/bench/markdown"
)

// Runs of each start, and how long a server is left alone before and while
// its rest is measured.
const (
	startRuns = 7
	settle    = 20 * time.Second
	watchRest = 30 * time.Second
)

// measureStart times starts on no data and on old data, and watches a server at rest.
func measureStart(ctx context.Context) (string, error) {
	var cold, warm, stops []time.Duration
	var memory, load float64
	for i := range startRuns {
		s, end, err := newServer(ctx)
		if err != nil {
			return "", err
		}
		defer end()
		cold = append(cold, s.ready)
		stops = append(stops, s.stop())
		if s, err = startServer(ctx, s.home); err != nil {
			return "", err
		}
		warm = append(warm, s.ready)
		if i == startRuns-1 {
			time.Sleep(settle)
			before := s.cpu()
			time.Sleep(watchRest)
			load = float64(s.cpu()-before) / float64(watchRest) * 100
			memory = s.memory("VmRSS")
		}
		stops = append(stops, s.stop())
	}
	return markdown.Table([][]string{
		{"what", "median", "worst", "bound"},
		{"ready, on old data", seconds(median(warm)), seconds(slices.Max(warm)), "1.5 s"},
		{"ready, on no data", seconds(median(cold)), seconds(slices.Max(cold)), "2.5 s"},
		{"stop", seconds(median(stops)), seconds(slices.Max(stops)), ""},
		{"memory at rest", fmt.Sprintf("%.0f MB", memory), "", "350 MB"},
		{"one core at rest", fmt.Sprintf("%.1f %%", load), "", "3 %"},
	}), nil
}

func median(values []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
