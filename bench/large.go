// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"diwan.dev/diwan/bench/markdown"
)

// largeReplicas is how many replicas a large job has.
const largeReplicas = 1000

// measureLarge times one large job of each of two kinds: one whose Pods are told
// little of each other, and one whose Pods are told all names.
func measureLarge(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Minute)
	defer cancel()
	replicas, err := setting("REPLICAS", largeReplicas)
	if err != nil {
		return "", err
	}
	rows := [][]string{{"job", "all replicas run after", "processor time", "environment of a Pod", "Pod", "job with its status", "a lost replica runs again after", "processor time", "memory"}}
	requests := [][]string{{"requests", "PyTorchJob", "TFJob"}}
	var counts []map[string]float64
	kinds := []string{"PyTorchJob", "TFJob"}
	for _, kind := range kinds {
		row, counted, err := runLarge(ctx, kind, replicas)
		if err != nil {
			return "", err
		}
		rows, counts = append(rows, append([]string{kind}, row...)), append(counts, counted)
	}
	for _, name := range names(counts...) {
		requests = append(requests, []string{name, fmt.Sprintf("%.0f", counts[0][name]), fmt.Sprintf("%.0f", counts[1][name])})
	}
	parts, err := profiled(ctx, kinds)
	return fmt.Sprintf("One job of %d replicas on %d hollow nodes.\n\n", replicas, floorNodes) + markdown.Table(rows) +
		"\nUntil all ran, the nodes' own with them:\n\n" + markdown.Table(requests) + parts, err
}

// runLarge runs one job, and takes a replica away.
func runLarge(ctx context.Context, kind string, replicas int) ([]string, map[string]float64, error) {
	profiles, err := newProfiler(settings.profile)
	if err != nil {
		return nil, nil, err
	}
	f, end, err := newFloor(ctx, profiles.arguments()...)
	if err != nil {
		return nil, nil, err
	}
	defer end()
	client := f.client.Resource(resourceOf(kind)).Namespace("default")
	watcher, err := client.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, err
	}
	defer watcher.Stop()
	until := func(holds func(job *unstructured.Unstructured) bool) (*unstructured.Unstructured, error) {
		for event := range watcher.ResultChan() {
			job, ok := event.Object.(*unstructured.Unstructured)
			if !ok {
				return nil, fmt.Errorf("the watch ended: %v", event.Object)
			}
			if holds(job) {
				return job, nil
			}
		}
		return nil, fmt.Errorf("the watch ended: %w", context.Cause(ctx))
	}
	before, err := f.requests(ctx)
	if err != nil {
		return nil, nil, err
	}
	began, cpu := time.Now(), f.cpu()
	if _, err := client.Create(ctx, trainingJob(kind, "large", replicas, false), metav1.CreateOptions{}); err != nil {
		return nil, nil, err
	}
	profiling, profiled := errgroup.WithContext(ctx)
	profiling.Go(func() error { return profiles.take(profiled, kind) })
	if _, err := until(func(job *unstructured.Unstructured) bool { return active(job) == replicas }); err != nil {
		return nil, nil, err
	}
	row := []string{seconds(time.Since(began)), seconds(f.cpu() - cpu)}
	after, err := f.requests(ctx)
	if err != nil {
		return nil, nil, err
	}
	for name := range after {
		after[name] -= before[name]
	}
	if err := profiling.Wait(); err != nil {
		return nil, nil, err
	}
	const victim = "large-worker-0"
	pod, err := f.kube.CoreV1().Pods("default").Get(ctx, victim, metav1.GetOptions{})
	if err != nil {
		return nil, nil, err
	}
	environment := 0
	for _, e := range pod.Spec.Containers[0].Env {
		environment += len(e.Name) + len(e.Value) + 2
	}
	text, err := json.Marshal(pod)
	if err != nil {
		return nil, nil, err
	}
	began, cpu = time.Now(), f.cpu()
	if err := f.kube.CoreV1().Pods("default").Delete(ctx, victim, metav1.DeleteOptions{}); err != nil {
		return nil, nil, err
	}
	job, err := until(func(job *unstructured.Unstructured) bool {
		restarts, _, _ := unstructured.NestedInt64(job.Object, "status", "restarts")
		return restarts > 0 && active(job) == replicas
	})
	if err != nil {
		return nil, nil, err
	}
	return append(row, fmt.Sprintf("%.1f kB", float64(environment)/1000), fmt.Sprintf("%.1f kB", float64(len(text))/1000), kilobytes(job),
		seconds(time.Since(began)), seconds(f.cpu()-cpu), fmt.Sprintf("%.0f MB", f.memory("VmRSS"))), after, nil
}
