// SPDX-License-Identifier: Apache-2.0

// Package memory stores observations in memory.
//
// It is the store for tests and for searches inside one process: it obeys the
// whole contract of [observation.Store], but ends with its process.
package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"diwan.dev/diwan/observation"
)

// New returns an empty store.
func New() *Store {
	return &Store{trials: map[observation.Trial]*series{}}
}

// Store implements [observation.Store] in memory.
type Store struct {
	mu     sync.RWMutex
	trials map[observation.Trial]*series // nil once closed
}

var _ observation.Store = (*Store)(nil)

// series is what one trial reported, in the order of arrival.
type series struct {
	points  []sourced
	offsets map[string]int64 // by source
}

type sourced struct {
	observation.Point
	source string
}

// Append implements [observation.Store].
func (s *Store) Append(ctx context.Context, t observation.Trial, b observation.Batch) error {
	if err := errors.Join(t.Check(), b.Check()); err != nil {
		return fmt.Errorf("cannot append to trial %s: %w", t, err)
	}
	return s.write(ctx, func() error {
		trial := s.trials[t]
		if trial == nil {
			trial = &series{offsets: map[string]int64{}}
		}
		if have := trial.offsets[b.Source]; have != b.From {
			return &observation.OffsetError{Trial: t, Source: b.Source, Have: have, Got: b.From}
		}
		for _, p := range b.Points {
			p.Time = p.Time.UTC().Round(0)
			trial.points = append(trial.points, sourced{p, b.Source})
		}
		trial.offsets[b.Source] = b.To
		s.trials[t] = trial
		return nil
	})
}

// Offset implements [observation.Store].
func (s *Store) Offset(ctx context.Context, t observation.Trial, source string) (int64, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.usable(ctx); err != nil {
		return 0, err
	}
	if trial := s.trials[t]; trial != nil {
		return trial.offsets[source], nil
	}
	return 0, nil
}

// Points implements [observation.Store].
func (s *Store) Points(ctx context.Context, t observation.Trial, q observation.Query) ([]observation.Point, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	trial := s.trials[t]
	if trial == nil {
		return nil, nil
	}
	var points []observation.Point
	for _, p := range trial.points {
		if q.Selects(p.Point) {
			points = append(points, p.Point)
		}
	}
	slices.SortStableFunc(points, func(a, b observation.Point) int { return a.Time.Compare(b.Time) })
	if q.Limit > 0 && len(points) > q.Limit {
		points = points[:q.Limit:q.Limit]
	}
	return points, nil
}

// DeleteSource implements [observation.Store].
func (s *Store) DeleteSource(ctx context.Context, t observation.Trial, source string) error {
	return s.write(ctx, func() error {
		if trial := s.trials[t]; trial != nil {
			delete(trial.offsets, source)
			trial.points = slices.DeleteFunc(trial.points, func(p sourced) bool { return p.source == source })
		}
		return nil
	})
}

// Delete implements [observation.Store].
func (s *Store) Delete(ctx context.Context, t observation.Trial) error {
	return s.write(ctx, func() error {
		delete(s.trials, t)
		return nil
	})
}

// Close implements [observation.Store] and forgets everything.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trials = nil
	return nil
}

func (s *Store) write(ctx context.Context, change func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return err
	}
	return change()
}

func (s *Store) usable(ctx context.Context) error {
	if s.trials == nil {
		return observation.ErrClosed
	}
	return ctx.Err()
}
