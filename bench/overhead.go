// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"time"

	"diwan.dev/diwan/bench/markdown"
)

// Trials of the two measurements, and how often each is repeated.
const (
	parallelTrials   = 500
	parallelism      = 50
	sequentialTrials = 100
	overheadRuns     = 3
)

// measureOverhead times trials that do nothing, and the same commands under xargs.
func measureOverhead(ctx context.Context) (string, error) {
	s, end, err := newServer(ctx)
	if err != nil {
		return "", err
	}
	defer end()
	rows := [][]string{{"trials", "in parallel", "diwan", "diwan, processor time a trial", "xargs -P"}}
	for _, c := range []struct{ trials, parallel int }{{parallelTrials, parallelism}, {sequentialTrials, 1}} {
		var ours, theirs, cpu []time.Duration
		for i := range overheadRuns {
			before := s.cpu()
			took, err := s.tune(ctx, experiment(fmt.Sprintf("overhead-%d-%d", c.parallel, i), c.trials, c.parallel, "echo loss=${trialParameters.x}"), nil)
			if err != nil {
				return "", err
			}
			ours, cpu = append(ours, took), append(cpu, (s.cpu()-before)/time.Duration(c.trials))
			if took, err = xargs(ctx, c.trials, c.parallel); err != nil {
				return "", err
			}
			theirs = append(theirs, took)
		}
		rows = append(rows, []string{
			strconv.Itoa(c.trials), strconv.Itoa(c.parallel),
			rate(c.trials, ours), fmt.Sprintf("%.1f ms", float64(median(cpu).Microseconds())/1000), rate(c.trials, theirs),
		})
	}
	return markdown.Table(rows) + fmt.Sprintf("\nMedian and range of %d runs; a trial's program is `sh -c 'echo loss=…'`.\n", overheadRuns), nil
}

// xargs runs the same commands without any platform.
func xargs(ctx context.Context, n, parallel int) (time.Duration, error) {
	began := time.Now()
	script := fmt.Sprintf("seq %d | xargs -P %d -I{} sh -c 'echo loss=0.{}'", n, parallel)
	if err := exec.CommandContext(ctx, "sh", "-c", script).Run(); err != nil {
		return 0, err
	}
	return time.Since(began), nil
}

// rate tells trials a second and milliseconds a trial.
func rate(n int, took []time.Duration) string {
	per := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 / float64(n) }
	m := median(took)
	return fmt.Sprintf("%.0f trials/s, %.1f ms each (%.1f–%.1f)", float64(n)/m.Seconds(), per(m), per(slices.Min(took)), per(slices.Max(took)))
}
