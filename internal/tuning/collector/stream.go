// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"diwan.dev/diwan/observation"
)

// Stream stores the metrics in the bytes of one source: the output of one run
// of a container, or a file that it writes. Its methods may be called by
// several goroutines, one after the other.
type Stream struct {
	config Config
	store  observation.Store
	trial  observation.Trial
	source string
	parser parser
	others *others // what is reported beside the metrics; nil where others look after that
	warn   func(message string)
	log    klog.Logger

	mu      sync.Mutex
	begun   bool                // the fields below are in line with the store
	stored  int64               // offset up to which the store has the source
	units   framer              // what was read after that
	read    time.Time           // when the last bytes were read
	waiting []observation.Point // from the bytes between stored and units.start()
	total   int                 // points stored
	thinned bool                // a user was told that some points are not kept
	failing bool                // the last attempt to store failed
	timer   *time.Timer         // set while something waits to be stored
}

// Offset returns the offset of the first byte that is not stored yet. The next
// Write begins there: bytes after it that were written before are forgotten.
func (s *Stream) Offset(ctx context.Context) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun = false
	if err := s.begin(ctx); err != nil {
		return 0, err
	}
	return s.stored, nil
}

// Write processes bytes that start at an offset and were read at a time. They
// follow those of the last call. If bytes in between were lost, it continues
// with what follows. If they start earlier, because a file was rewritten, the
// source's earlier content is forgotten.
//
// While the store fails, points wait and are retried; Finish reports if they
// could not be stored.
func (s *Stream) Write(ctx context.Context, offset int64, p []byte, at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.seek(ctx, offset); err != nil {
		return err
	}
	s.read = at
	s.units.add(p, func(unit []byte) { s.take(ctx, unit, at) })
	if s.units.start()-s.stored > s.config.MaxBehind && !s.failing {
		s.tryFlush(ctx)
	}
	s.arm()
	return nil
}

// Finish ends the stream. When it returns nil, every metric is stored,
// including that of an unterminated last line. After an error it may be
// called again.
func (s *Stream) Finish(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.begin(ctx); err != nil {
		return err
	}
	s.units.finish(func(unit []byte) { s.take(ctx, unit, s.read) })
	if len(s.waiting) > 0 {
		if err := s.flush(ctx); err != nil {
			return err
		}
	}
	s.disarm()
	return s.complain(ctx)
}

// complain warns the user about a name that may be misspelled, unless the
// objective has an earlier value.
func (s *Stream) complain(ctx context.Context) error {
	why := s.others.complaint()
	if why == "" {
		return nil
	}
	points, err := s.store.Points(ctx, s.trial, observation.Query{Metric: s.others.objective, Limit: 1})
	if err != nil {
		return err
	}
	if len(points) == 0 {
		s.warn(why)
	}
	return nil
}

// Discard forgets the source, which is produced again from its start.
func (s *Stream) Discard(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.forget(ctx)
}

// begin brings the stream in line with the store.
func (s *Stream) begin(ctx context.Context) error {
	if s.begun {
		return nil
	}
	stored, err := s.store.Offset(ctx, s.trial, s.source)
	if err != nil {
		return err
	}
	total := 0
	if stored > 0 {
		points, err := s.store.Points(ctx, s.trial, observation.Query{})
		if err != nil {
			return err
		}
		total = len(points)
	}
	s.reset(stored, total)
	return nil
}

func (s *Stream) reset(stored int64, total int) {
	s.disarm()
	s.units.begin(stored)
	s.begun, s.stored, s.total, s.waiting = true, stored, total, nil
}

// seek goes to the offset of the bytes that come next.
func (s *Stream) seek(ctx context.Context, offset int64) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	switch next := s.units.next(); {
	case offset > next:
		s.warn(fmt.Sprintf("%d bytes of the trial's output were lost before their metrics could be read", offset-next))
		s.units.begin(offset)
	case offset < next:
		if err := s.forget(ctx); err != nil {
			return err
		}
		s.units.begin(offset)
	}
	return nil
}

func (s *Stream) forget(ctx context.Context) error {
	if err := s.store.DeleteSource(ctx, s.trial, s.source); err != nil {
		return err
	}
	s.reset(0, 0)
	return nil
}

// take finds the metrics of a unit. Too many to wait are stored at once, or
// thinned out where that is no help.
func (s *Stream) take(ctx context.Context, unit []byte, at time.Time) {
	s.waiting = s.parser.parse(s.waiting, unit, at)
	if len(s.waiting) < s.config.MaxWaiting {
		return
	}
	if s.failing || s.full() {
		s.thin()
	} else {
		s.tryFlush(ctx)
	}
}

// tryFlush stores what waits, or leaves it waiting.
func (s *Stream) tryFlush(ctx context.Context) {
	err := s.flush(ctx)
	if errors.Is(err, observation.ErrClosed) {
		s.begun = false // the process ends; the next one resumes from the stored offset
		return
	}
	if err != nil {
		s.log.Error(err, "Cannot store a trial's metrics yet", "trial", s.trial, "source", s.source)
	}
}

// full reports whether what waits is more than may be stored one by one.
func (s *Stream) full() bool { return s.total+len(s.waiting) > s.config.MaxPoints }

func (s *Stream) thin() {
	before, full := len(s.waiting), s.full()
	s.waiting = observation.Thin(s.waiting)
	if !s.thinned && len(s.waiting) < before {
		s.thinned = true
		why := fmt.Sprintf("it has more than %d data points", s.config.MaxPoints)
		if !full {
			why = fmt.Sprintf("the store is unavailable, and more than %d data points are waiting", s.config.MaxWaiting)
		}
		s.warn("from now on only the minimum, maximum and latest of the trial's metrics in each interval are kept: " + why)
	}
}

// flush stores what waits, whether or not the caller still waits for it: so
// its outcome is known.
func (s *Stream) flush(ctx context.Context) error {
	s.disarm()
	if s.full() {
		s.thin()
	}
	to := s.units.start()
	err := s.store.Append(context.WithoutCancel(ctx), s.trial, observation.Batch{
		Source: s.source, From: s.stored, To: to, Points: s.waiting,
	})
	s.failing = err != nil
	if err != nil {
		return fmt.Errorf("cannot store metrics of bytes %d to %d: %w", s.stored, to, err)
	}
	s.total += len(s.waiting)
	s.stored, s.waiting = to, nil
	return nil
}

// arm sets the timer that stores what waits, unless it is set. An offset
// without points is written only occasionally.
func (s *Stream) arm() {
	if s.timer != nil || !s.begun || s.units.start() == s.stored {
		return
	}
	wait := s.config.Interval
	if len(s.waiting) == 0 || s.failing || s.full() {
		wait *= patience
	}
	s.timer = time.AfterFunc(wait, s.tick)
}

func (s *Stream) disarm() {
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
}

// tick runs when the timer fires. One that was stopped too late finds nothing
// to store, or stores early.
func (s *Stream) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = nil
	if !s.begun || s.units.start() == s.stored {
		return
	}
	s.tryFlush(context.Background())
	s.arm()
}
