// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"diwan.dev/diwan/bench/markdown"
)

// Trials of the load that run at a time, and the part whose cost is told.
const (
	loadParallel = 200
	loadPart     = 1000
)

// measureLoad runs one experiment of trials that take 100 ms and print ten
// metric lines, and tells what each thousand of them costs.
func measureLoad(ctx context.Context) (string, error) {
	profiles, err := newProfiler(settings.profile)
	if err != nil {
		return "", err
	}
	s, end, err := newServer(ctx, profiles.arguments()...)
	if err != nil {
		return "", err
	}
	defer end()
	program, err := s.buildProgram(ctx)
	if err != nil {
		return "", err
	}
	before, err := s.readMetrics(ctx)
	if err != nil {
		return "", err
	}
	if err := profiles.take(ctx, "start"); err != nil {
		return "", err
	}
	profiling, running := errgroup.WithContext(ctx)
	l := load{server: s, trials: settings.trials, last: time.Now(), lastCPU: s.cpu()}
	took, err := s.tune(ctx, experiment("load", l.trials, loadParallel, "exec "+program+" ${trialParameters.x}"), func(e *unstructured.Unstructured) error {
		told, err := l.see(ctx, e)
		if told && l.done < int64(l.trials) {
			name := strconv.Itoa(len(l.rows) * loadPart)
			profiling.Go(func() error { return profiles.take(running, name) })
		}
		return err
	})
	if err != nil {
		return "", err
	}
	after, err := s.readMetrics(ctx)
	if err != nil {
		return "", err
	}
	if err := errors.Join(profiling.Wait(), profiles.take(ctx, "end")); err != nil {
		return "", err
	}
	head := []string{"trials done", "trials/s", "processor time a trial", "memory", "of it of files", "live on the heap", "Experiment", "Suggestion"}
	return markdown.Table(append([][]string{head}, l.rows...)) + fmt.Sprintf("\n%d trials, %d in parallel, of a program that takes 100 ms and prints ten metric lines, in %s: %.0f trials/s.\n\n%s",
		l.trials, loadParallel, took.Round(time.Second), float64(l.trials)/took.Seconds(), requestTable(before, after, l.trials)), nil
}

// load is a load that runs.
type load struct {
	*server
	trials  int
	rows    [][]string
	last    time.Time     // when the last row was told
	lastCPU time.Duration // the CPU time at that moment
	done    int64         // the trials that had ended then
}

// see tells a row when another part of the trials has ended, and says whether
// it did.
func (l *load) see(ctx context.Context, e *unstructured.Unstructured) (told bool, err error) {
	n, _, _ := unstructured.NestedInt64(e.Object, "status", "trialsSucceeded")
	if n-l.done < loadPart && n != int64(l.trials) || n == l.done {
		return false, nil
	}
	now, cpu, part := time.Now(), l.cpu(), float64(n-l.done)
	suggestion, err := l.client.Resource(experiments.GroupVersion().WithResource("suggestions")).Namespace("default").Get(ctx, e.GetName(), metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	m, err := l.readMetrics(ctx)
	if err != nil {
		return false, err
	}
	row := []string{
		strconv.FormatInt(n, 10),
		fmt.Sprintf("%.0f", part/now.Sub(l.last).Seconds()),
		fmt.Sprintf("%.1f ms", (cpu-l.lastCPU).Seconds()*1000/part),
		fmt.Sprintf("%.0f MB", l.memory("VmRSS")), fmt.Sprintf("%.0f MB", l.memory("RssFile")),
		fmt.Sprintf("%.0f MB", m.live/(1<<20)),
		kilobytes(e), kilobytes(suggestion),
	}
	l.rows = append(l.rows, row)
	fmt.Fprintf(os.Stderr, "  %v\n", row)
	l.last, l.lastCPU, l.done = now, cpu, n
	return true, nil
}

// buildProgram builds the program of the trials and returns its path.
func (s *server) buildProgram(ctx context.Context) (string, error) {
	program := filepath.Join(s.home, "program")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", program, "./bench/program").CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot build the program of the trials: %w\n%s", err, out)
	}
	return program, nil
}

// kilobytes is the size of an object as etcd keeps it.
func kilobytes(o *unstructured.Unstructured) string {
	text, err := o.MarshalJSON()
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%.1f kB", float64(len(text))/1000)
}
