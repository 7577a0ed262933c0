// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"diwan.dev/diwan/bench/markdown"
)

// Trials of the long experiment, and the part whose cost is compared.
const (
	scaleTrials = 5000
	scalePart   = 1000
)

// measureScale runs one long experiment and compares its first thousand
// trials with its last.
func measureScale(ctx context.Context) (string, error) {
	s, end, err := newServer(ctx)
	if err != nil {
		return "", err
	}
	defer end()
	began := time.Now()
	rows := [][]string{{"trials done", "time a trial", "processor time a trial", "memory"}}
	lastTime, lastCPU, lastDone := began, s.cpu(), int64(0)
	seen := func(e *unstructured.Unstructured) error {
		n, _, _ := unstructured.NestedInt64(e.Object, "status", "trialsSucceeded")
		if n-lastDone < scalePart && n != scaleTrials || n == lastDone {
			return nil
		}
		now, cpu := time.Now(), s.cpu()
		part := float64(n - lastDone)
		rows = append(rows, []string{
			fmt.Sprint(n),
			fmt.Sprintf("%.1f ms", now.Sub(lastTime).Seconds()*1000/part),
			fmt.Sprintf("%.1f ms", (cpu-lastCPU).Seconds()*1000/part),
			fmt.Sprintf("%.0f MB", s.memory("VmRSS")),
		})
		fmt.Fprintf(os.Stderr, "  %v\n", rows[len(rows)-1])
		lastTime, lastCPU, lastDone = now, cpu, n
		return nil
	}
	took, err := s.tune(ctx, experiment("scale", scaleTrials, parallelism, "echo loss=${trialParameters.x}"), seen)
	if err != nil {
		return "", err
	}
	size, err := s.largestObject(ctx)
	if err != nil {
		return "", err
	}
	return markdown.Table(rows) + fmt.Sprintf("\n%d trials, %d in parallel, in %s; %s.\n", scaleTrials, parallelism, took.Round(time.Second), size), nil
}

// largestObject tells the largest object of our kinds.
func (s *server) largestObject(ctx context.Context) (string, error) {
	largest, name := 0, ""
	for _, resource := range []string{"experiments", "suggestions", "trials"} {
		list, err := s.list(ctx, resource)
		if err != nil {
			return "", err
		}
		for _, item := range list.Items {
			text, err := item.MarshalJSON()
			if err != nil {
				return "", err
			}
			if len(text) > largest {
				largest, name = len(text), item.GetKind()+" "+item.GetName()
			}
		}
	}
	return fmt.Sprintf("the largest object is %s with %.1f kB", name, float64(largest)/1000), nil
}
