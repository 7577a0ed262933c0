// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"diwan.dev/diwan/bench/markdown"
)

// Training jobs at once, and the replicas of each.
const (
	jobsAtOnce  = 200
	jobReplicas = 8
)

// measureJobs times many training jobs at once, on nodes that only pretend to
// run them: as they come, and as gangs.
func measureJobs(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Minute)
	defer cancel()
	jobs, err := setting("JOBS", jobsAtOnce)
	if err != nil {
		return "", err
	}
	rows := [][]string{{"placed", "all jobs run after", "jobs/s", "Pods/s", "a job runs after, median", "worst", "processor time a job", "memory"}}
	requests := [][]string{{"requests for a job", "one by one", "as gangs"}}
	var counts []map[string]float64
	ways := []string{"one by one", "as gangs"}
	for _, way := range ways {
		row, counted, err := runJobs(ctx, jobs, way)
		if err != nil {
			return "", err
		}
		rows, counts = append(rows, append([]string{way}, row...)), append(counts, counted)
	}
	for _, name := range names(counts...) {
		requests = append(requests, []string{name, fmt.Sprintf("%.1f", counts[0][name]), fmt.Sprintf("%.1f", counts[1][name])})
	}
	text := fmt.Sprintf("%d PyTorchJobs of %d replicas, created at once by 16 clients, on %d hollow nodes.\n\n", jobs, jobReplicas, floorNodes) +
		markdown.Table(rows) + "\n" + markdown.Table(requests) + "\nThis includes one to create the job, and one per Pod in which the node reports it running.\n"
	parts, err := profiled(ctx, ways)
	return text + parts, err
}

// profiled tells where the CPU time of measurements went, by their profiles,
// if such were taken.
func profiled(ctx context.Context, names []string) (string, error) {
	if settings.profile == "" {
		return "", nil
	}
	var columns []map[string]float64
	for _, name := range names {
		column, err := shares(ctx, filepath.Join(settings.profile, name+".cpu"))
		if err != nil {
			return "", err
		}
		columns = append(columns, column)
	}
	return fmt.Sprintf("\nOf the server's processor time in the first %.0f s (`-profile DIR` says so; its nodes and clients are other processes):\n\n", processorProfile.Seconds()) +
		markdown.Table(shareTable(names, columns...)), nil
}

// setting reads a number from the environment, for a smaller measurement.
func setting(name string, normal int) (int, error) {
	n, err := strconv.Atoi(cmp.Or(os.Getenv(name), strconv.Itoa(normal)))
	if err != nil || n < 1 {
		return 0, fmt.Errorf("cannot read %s: a number above 0 is wanted", name)
	}
	return n, nil
}

// runJobs creates jobs and waits until all run. It tells the requests of each.
func runJobs(ctx context.Context, jobs int, way string) ([]string, map[string]float64, error) {
	profiles, err := newProfiler(settings.profile)
	if err != nil {
		return nil, nil, err
	}
	f, end, err := newFloor(ctx, profiles.arguments()...)
	if err != nil {
		return nil, nil, err
	}
	defer end()
	client := f.client.Resource(resourceOf("PyTorchJob")).Namespace("default")
	watcher, err := client.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, err
	}
	defer watcher.Stop()
	before, err := f.requests(ctx)
	if err != nil {
		return nil, nil, err
	}
	began, cpu := time.Now(), f.cpu()
	var lives []time.Duration
	var took, spent time.Duration
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		creators, ctx := errgroup.WithContext(ctx)
		creators.SetLimit(16)
		for i := range jobs {
			creators.Go(func() error {
				_, err := client.Create(ctx, trainingJob("PyTorchJob", fmt.Sprintf("job-%d", i), jobReplicas, way == "as gangs"), metav1.CreateOptions{})
				return err
			})
		}
		return creators.Wait()
	})
	group.Go(func() error { return profiles.take(ctx, way) })
	group.Go(func() error {
		var err error
		lives, err = followJobs(ctx, watcher, jobs)
		took, spent = time.Since(began), f.cpu()-cpu
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	after, err := f.requests(context.WithoutCancel(ctx))
	if err != nil {
		return nil, nil, err
	}
	for name := range after {
		after[name] = (after[name] - before[name]) / float64(jobs)
	}
	slices.Sort(lives)
	return []string{
		seconds(took), fmt.Sprintf("%.1f", float64(jobs)/took.Seconds()), fmt.Sprintf("%.0f", float64(jobs*jobReplicas)/took.Seconds()),
		seconds(median(lives)), seconds(lives[len(lives)-1]),
		fmt.Sprintf("%.0f ms", spent.Seconds()*1000/float64(jobs)), fmt.Sprintf("%.0f MB", f.memory("VmRSS")),
	}, after, nil
}

// followJobs tells how long each of so many jobs took until all its replicas
// ran, since it was first seen.
func followJobs(ctx context.Context, watcher watch.Interface, jobs int) ([]time.Duration, error) {
	first, runs := map[string]time.Time{}, map[string]bool{}
	var lives []time.Duration
	for len(runs) < jobs {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d jobs run: %w", len(runs), jobs, ctx.Err())
		case event, ok := <-watcher.ResultChan():
			job, is := event.Object.(*unstructured.Unstructured)
			if !ok || !is {
				return nil, fmt.Errorf("the watch ended: %v", event.Object)
			}
			name, now := job.GetName(), time.Now()
			if _, known := first[name]; !known {
				first[name] = now
			}
			if !runs[name] && active(job) == jobReplicas {
				runs[name] = true
				lives = append(lives, now.Sub(first[name]))
			}
		}
	}
	return lives, nil
}

// active is how many replicas of a job run.
func active(job *unstructured.Unstructured) int {
	types, _, _ := unstructured.NestedMap(job.Object, "status", "replicaStatuses")
	n := int64(0)
	for name := range types {
		count, _, _ := unstructured.NestedInt64(types, name, "active")
		n += count
	}
	return int(n)
}
