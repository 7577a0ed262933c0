// SPDX-License-Identifier: Apache-2.0

package remotestore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	wire "diwan.dev/diwan/api/observation/v1"
	"diwan.dev/diwan/internal/tuning/dbmanager"
	"diwan.dev/diwan/observation"
)

// ErrEnded is wrapped by the error of storing points of a trial that has ended
// or is not there: to retry does not help.
var ErrEnded = errors.New("the trial accepts no more metrics")

const (
	// timeout bounds a call.
	timeout = 10 * time.Second
	// maxReply bounds an answer in bytes: some million points.
	maxReply = 64 << 20
)

// Store is an [observation.Store] on a server.
type Store struct {
	client wire.StoreClient

	mu      sync.Mutex
	closed  bool
	calls   sync.WaitGroup
	unclear map[source]*attempts
}

var _ observation.Store = (*Store)(nil)

type source struct {
	trial observation.Trial
	name  string
}

// New returns the store behind a connection, which stays the caller's.
func New(conn grpc.ClientConnInterface) *Store {
	return &Store{client: wire.NewStoreClient(conn), unclear: map[source]*attempts{}}
}

// Append implements [observation.Store].
func (s *Store) Append(ctx context.Context, t observation.Trial, b observation.Batch) error {
	if err := errors.Join(t.Check(), b.Check()); err != nil {
		return fmt.Errorf("cannot append to trial %s: %w", t, err)
	}
	return s.call(ctx, t, "append to", func(ctx context.Context) error {
		key := source{t, b.Source}
		s.mu.Lock()
		before := s.unclear[key]
		s.mu.Unlock()
		after, err := s.resume(ctx, t, before, b)
		s.mu.Lock()
		defer s.mu.Unlock()
		if after == nil {
			delete(s.unclear, key)
		} else {
			s.unclear[key] = after
		}
		return err
	})
}

// attempts are the batches of one source that were sent since a caller was last
// told that one is stored. They follow each other. Only the last may be unclear:
// the others are stored.
type attempts struct {
	sent    []observation.Batch
	unclear bool
}

// resume stores what of b earlier attempts did not, and returns those to
// remember.
func (s *Store) resume(ctx context.Context, t observation.Trial, earlier *attempts, b observation.Batch) (*attempts, error) {
	now := &attempts{}
	if earlier != nil {
		now.sent = earlier.sent
	}
	rest := b
	for i, sent := range now.sent {
		if !begins(rest, sent) { // the caller goes another way: the server tells where its source stands
			now.sent, rest = nil, b
			break
		}
		if earlier.unclear && i == len(now.sent)-1 {
			err := s.append(ctx, t, sent)
			if moved := (*observation.OffsetError)(nil); err != nil && (!errors.As(err, &moved) || moved.Have != sent.To) {
				return earlier, err
			}
		}
		rest.From, rest.Points = sent.To, rest.Points[len(sent.Points):]
	}
	if len(now.sent) > 0 && rest.From == rest.To {
		return nil, nil
	}
	err := s.append(ctx, t, rest)
	switch {
	case err == nil:
		return nil, nil
	case unclear(err):
		rest.Points = slices.Clone(rest.Points)
		now.sent, now.unclear = append(slices.Clip(now.sent), rest), true
	}
	return now, err
}

// begins reports whether a batch begins with all that another holds.
func begins(b, with observation.Batch) bool {
	return b.From == with.From && b.To >= with.To && len(b.Points) >= len(with.Points) &&
		slices.Equal(b.Points[:len(with.Points)], with.Points)
}

func (s *Store) forget(key source) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.unclear, key)
}

// unclear reports whether a call with this error may have been carried out.
func unclear(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Internal, codes.Aborted:
		return true
	case codes.Unknown:
		var moved *observation.OffsetError
		return err != nil && !errors.As(err, &moved)
	}
	return false
}

func (s *Store) append(ctx context.Context, t observation.Trial, b observation.Batch) error {
	reply, err := s.client.Append(ctx, &wire.AppendRequest{
		TrialName: t.Name, Source: b.Source, From: b.From, To: b.To, Points: dbmanager.ToWire(b.Points),
	})
	if err == nil && !reply.GetStored() {
		err = &observation.OffsetError{Trial: t, Source: b.Source, Have: reply.GetOffset(), Got: b.From}
	}
	return err
}

// Offset implements [observation.Store].
func (s *Store) Offset(ctx context.Context, t observation.Trial, name string) (offset int64, err error) {
	err = s.call(ctx, t, "read", func(ctx context.Context) error {
		reply, err := s.client.Offset(ctx, &wire.OffsetRequest{TrialName: t.Name, Source: name})
		if err == nil {
			s.forget(source{t, name})
		}
		offset = reply.GetOffset()
		return err
	})
	return offset, err
}

// Points implements [observation.Store].
func (s *Store) Points(ctx context.Context, t observation.Trial, q observation.Query) (points []observation.Point, err error) {
	err = s.call(ctx, t, "read", func(ctx context.Context) error {
		reply, err := s.client.Points(ctx, &wire.PointsRequest{
			TrialName: t.Name, Metric: q.Metric, Start: bound(q.Start), End: bound(q.End), Limit: int64(q.Limit),
		}, grpc.MaxCallRecvMsgSize(maxReply))
		if len(reply.GetPoints()) > 0 {
			points = dbmanager.FromWire(reply.GetPoints())
		}
		return err
	})
	return points, err
}

func bound(t time.Time) *wire.Point {
	if t.IsZero() {
		return nil
	}
	return &wire.Point{Seconds: t.Unix(), Nanos: int32(t.Nanosecond())}
}

// DeleteSource implements [observation.Store].
func (s *Store) DeleteSource(ctx context.Context, t observation.Trial, name string) error {
	return s.call(ctx, t, "delete from", func(ctx context.Context) error {
		_, err := s.client.DeleteSource(ctx, &wire.DeleteSourceRequest{TrialName: t.Name, Source: name})
		if err == nil {
			s.forget(source{t, name})
		}
		return err
	})
}

// Delete implements [observation.Store].
func (s *Store) Delete(ctx context.Context, t observation.Trial) error {
	return s.call(ctx, t, "delete", func(ctx context.Context) error {
		_, err := s.client.Delete(ctx, &wire.DeleteRequest{TrialName: t.Name})
		return err
	})
}

// Warn reports problems with a trial's metrics to its users.
func (s *Store) Warn(ctx context.Context, t observation.Trial, message string) error {
	return s.call(ctx, t, "warn about", func(ctx context.Context) error {
		_, err := s.client.Warn(ctx, &wire.WarnRequest{TrialName: t.Name, Message: message})
		return err
	})
}

// Close implements [observation.Store]. The connection stays open.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.calls.Wait()
	return nil
}

// call makes a call, unless the store is closed.
func (s *Store) call(ctx context.Context, t observation.Trial, verb string, do func(context.Context) error) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return observation.ErrClosed
	}
	s.calls.Add(1)
	s.mu.Unlock()
	defer s.calls.Done()
	if err := ctx.Err(); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if t.Namespace != "" {
		limited = metadata.AppendToOutgoingContext(limited, dbmanager.NamespaceKey, t.Namespace)
	}
	err := do(limited)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("cannot %s the observation of trial %s: %w", verb, t, translate(err))
}

// translate gives an error of the server its meaning for users of a store.
func translate(err error) error {
	s, ok := status.FromError(err)
	if !ok {
		return err
	}
	meaning := map[codes.Code]error{
		codes.FailedPrecondition: ErrEnded,
		codes.NotFound:           ErrEnded,
		codes.ResourceExhausted:  observation.ErrFull,
		codes.DataLoss:           observation.ErrCorrupt,
	}[s.Code()]
	if meaning == nil {
		return err
	}
	return fmt.Errorf("%w: %s", meaning, s.Message())
}
