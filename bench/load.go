// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Trials of the load, how many run at a time, and the part whose cost is told.
const (
	loadTrials   = 10_000
	loadParallel = 200
	loadPart     = 1000
)

// measureLoad runs one experiment of trials that take 100 ms and print ten
// metric lines, and tells what each thousand of them costs.
func measureLoad(ctx context.Context) (string, error) {
	trials := loadTrials
	if text := os.Getenv("LOAD_TRIALS"); text != "" { // a shorter run, to profile
		var err error
		if trials, err = strconv.Atoi(text); err != nil {
			return "", fmt.Errorf("cannot read LOAD_TRIALS: %w", err)
		}
	}
	s, end, err := newServer(ctx)
	if err != nil {
		return "", err
	}
	defer end()
	program := filepath.Join(s.home, "program")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", program, "./bench/program").CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot build the program of the trials: %w\n%s", err, out)
	}
	rows := [][]string{{"trials done", "trials/s", "processor time a trial", "memory", "of it of files", "Experiment", "Suggestion"}}
	last, lastCPU, done := time.Now(), s.cpu(), int64(0)
	seen := func(e *unstructured.Unstructured) error {
		n, _, _ := unstructured.NestedInt64(e.Object, "status", "trialsSucceeded")
		if n-done < loadPart && n != int64(trials) || n == done {
			return nil
		}
		now, cpu, part := time.Now(), s.cpu(), float64(n-done)
		suggestion, err := s.client.Resource(experiments.GroupVersion().WithResource("suggestions")).Namespace("default").Get(ctx, e.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		rows = append(rows, []string{
			strconv.FormatInt(n, 10),
			fmt.Sprintf("%.0f", part/now.Sub(last).Seconds()),
			fmt.Sprintf("%.1f ms", (cpu-lastCPU).Seconds()*1000/part),
			fmt.Sprintf("%.0f MB", s.memory("VmRSS")), fmt.Sprintf("%.0f MB", s.memory("RssFile")),
			kilobytes(e), kilobytes(suggestion),
		})
		fmt.Fprintf(os.Stderr, "  %v\n", rows[len(rows)-1])
		last, lastCPU, done = now, cpu, n
		return nil
	}
	took, err := s.tune(ctx, experiment("load", trials, loadParallel, "exec "+program+" ${trialParameters.x}"), seen)
	if err != nil {
		return "", err
	}
	return table(rows) + fmt.Sprintf("\n%d trials, %d in parallel, of a program that takes 100 ms and prints ten metric lines, in %s: %.0f trials/s.\n",
		trials, loadParallel, took.Round(time.Second), float64(trials)/took.Seconds()), nil
}

// kilobytes is the size of an object as etcd keeps it.
func kilobytes(o *unstructured.Unstructured) string {
	text, err := o.MarshalJSON()
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%.1f kB", float64(len(text))/1000)
}
