// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"diwan.dev/diwan/bench/search/problem"
	"diwan.dev/diwan/bench/search/result"
	"diwan.dev/diwan/bench/search/study"
)

// executor runs tasks, several at once.
type executor struct {
	workshop *workshop
	store    *result.Store
	jobs     int
	limit    time.Duration // of an optimiser's CPU time a search, where the task has none
	again    bool          // also those that are in the store

	mu    sync.Mutex
	tasks []task
	total int
	began time.Time
}

// run runs the tasks that the store does not have.
func (e *executor) run(ctx context.Context, tasks []task) error {
	for _, t := range tasks {
		if e.again || !e.store.Has(t.key(), t.trials) {
			e.tasks = append(e.tasks, t)
		}
	}
	e.total, e.began = len(e.tasks), time.Now()
	fmt.Fprintf(os.Stderr, "%d searches to run, %d done before\n", e.total, len(tasks)-e.total)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failures := make([]error, e.jobs)
	var workers sync.WaitGroup
	for i := range e.jobs {
		workers.Go(func() {
			if failures[i] = e.work(ctx); failures[i] != nil {
				cancel()
			}
		})
	}
	workers.Wait()
	return errors.Join(failures...)
}

// next takes a task off the list.
func (e *executor) next() (task, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.tasks) == 0 {
		return task{}, false
	}
	t := e.tasks[0]
	e.tasks = e.tasks[1:]
	if done := e.total - len(e.tasks) - 1; done%50 == 0 {
		fmt.Fprintf(os.Stderr, "%s  %d of %d  %s on %s\n", time.Since(e.began).Round(time.Second), done, e.total, t.optimiser, t.problem.Name)
	}
	return t, true
}

// work runs tasks until there are none, with one optimiser at a time.
func (e *executor) work(ctx context.Context) error {
	var optimiser study.Optimiser
	name := ""
	defer func() {
		if optimiser != nil {
			_ = optimiser.Close()
		}
	}()
	for {
		t, ok := e.next()
		if !ok || ctx.Err() != nil {
			return ctx.Err()
		}
		if t.optimiser != name {
			if optimiser != nil {
				if err := optimiser.Close(); err != nil {
					return err
				}
			}
			var err error
			if optimiser, err = e.workshop.optimiser(t.optimiser); err != nil {
				optimiser = unavailable{err}
			}
			name = t.optimiser
		}
		run, err := study.Run(ctx, optimiser, name, t.problem, study.Setup{Seed: t.seed, Trials: t.trials, Parallel: t.parallel}, cmp.Or(t.limit, e.limit))
		if err != nil {
			return err
		}
		if err := e.store.Add(run); err != nil {
			return err
		}
	}
}

// unavailable is an optimiser that cannot be had: every search says why.
type unavailable struct{ error }

func (u unavailable) Begin(context.Context, *problem.Problem, study.Setup) (study.Session, error) {
	return nil, u.error
}

func (u unavailable) Close() error { return nil }
