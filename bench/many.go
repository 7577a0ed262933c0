// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"diwan.dev/diwan/bench/markdown"
)

// manyTrials are the trials of each of the experiments at once.
const manyTrials = 2

// measureMany creates many small experiments at once and tells when each was
// done.
func measureMany(ctx context.Context) (string, error) {
	s, end, err := newServer(ctx)
	if err != nil {
		return "", err
	}
	defer end()
	ctx, cancel := context.WithTimeout(ctx, 20*time.Minute)
	defer cancel()
	client := s.client.Resource(experiments).Namespace("default")
	watcher, err := client.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	defer watcher.Stop()
	began, before := time.Now(), s.cpu()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		creators, ctx := errgroup.WithContext(ctx)
		creators.SetLimit(16)
		for i := range settings.experiments {
			e := experiment(fmt.Sprintf("many-%d", i), manyTrials, manyTrials, "echo loss=${trialParameters.x}")
			creators.Go(func() error {
				_, err := client.Create(ctx, e, metav1.CreateOptions{})
				return err
			})
		}
		return creators.Wait()
	})
	var ends, lives []time.Duration
	group.Go(func() error {
		ends, lives, err = followMany(ctx, watcher, began)
		return err
	})
	if err := group.Wait(); err != nil {
		return "", err
	}
	slices.Sort(lives)
	rows := [][]string{{"of the experiments", "have ended, after the first was created", "took, each from its own creation"}}
	for _, share := range []int{0, 10, 50, 90, 99, 100} {
		i := (settings.experiments - 1) * share / 100
		rows = append(rows, []string{fmt.Sprintf("%d %%", share), seconds(ends[i]), seconds(lives[i])})
	}
	return markdown.Table(rows) + fmt.Sprintf("\n%d experiments of %d trials each, created at once: %.1f ms of CPU time per trial, %.0f MB at the end.\n",
		settings.experiments, manyTrials, (s.cpu()-before).Seconds()*1000/float64(settings.experiments*manyTrials), s.memory("VmRSS")), nil
}

// followMany tells when each experiment ended, in the order in which they did:
// since began, and since it was first seen.
func followMany(ctx context.Context, watcher watch.Interface, began time.Time) (ends, lives []time.Duration, err error) {
	first, over := map[string]time.Time{}, map[string]bool{}
	for len(over) < settings.experiments {
		select {
		case <-ctx.Done():
			return nil, nil, fmt.Errorf("%d of %d experiments have ended: %w", len(over), settings.experiments, ctx.Err())
		case event, ok := <-watcher.ResultChan():
			object, is := event.Object.(*unstructured.Unstructured)
			if !ok || !is {
				return nil, nil, fmt.Errorf("the watch ended: %v", event.Object)
			}
			name, now := object.GetName(), time.Now()
			if _, known := first[name]; !known {
				first[name] = now
			}
			if over[name] || !hasCondition(object, "Succeeded") {
				continue
			}
			over[name] = true
			ends, lives = append(ends, now.Sub(began)), append(lives, now.Sub(first[name]))
		}
	}
	return ends, lives, nil
}
