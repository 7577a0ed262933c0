// SPDX-License-Identifier: Apache-2.0

package dbmanager

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	wire "diwan.dev/diwan/api/observation/v1"
	"diwan.dev/diwan/observation"
)

// storeServer serves a Store to collectors: batches of sources instead of
// reports.
type storeServer struct {
	wire.UnimplementedStoreServer
	*Server
}

// Append stores a batch.
func (s storeServer) Append(ctx context.Context, r *wire.AppendRequest) (*wire.AppendReply, error) {
	batch := observation.Batch{Source: r.GetSource(), From: r.GetFrom(), To: r.GetTo(), Points: FromWire(r.GetPoints())}
	if err := batch.Check(); err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "cannot store the metrics of trial %.300q: %v", r.GetTrialName(), err)
	}
	for i, p := range batch.Points {
		if len(p.Metric) > s.MaxName || len(p.Value) > s.MaxValue {
			return nil, status.Errorf(codes.InvalidArgument, "cannot store the metrics of trial %.300q: point %d is longer than %d and %d bytes",
				r.GetTrialName(), i, s.MaxName, s.MaxValue)
		}
	}
	trial, err := s.Access.Trial(ctx, r.GetTrialName(), Update)
	if err != nil {
		return nil, err
	}
	err = s.Store.Append(ctx, trial, batch)
	var moved *observation.OffsetError
	switch {
	case errors.As(err, &moved):
		return &wire.AppendReply{Offset: moved.Have}, nil
	case err != nil:
		return nil, failure("store", trial, err)
	}
	return &wire.AppendReply{Stored: true, Offset: batch.To}, nil
}

// Offset returns the offset up to which a source is stored.
func (s storeServer) Offset(ctx context.Context, r *wire.OffsetRequest) (*wire.OffsetReply, error) {
	trial, err := s.Access.Trial(ctx, r.GetTrialName(), Get)
	if err != nil {
		return nil, err
	}
	offset, err := s.Store.Offset(ctx, trial, r.GetSource())
	if err != nil {
		return nil, failure("read", trial, err)
	}
	return &wire.OffsetReply{Offset: offset}, nil
}

// Points returns points of a trial.
func (s storeServer) Points(ctx context.Context, r *wire.PointsRequest) (*wire.PointsReply, error) {
	trial, err := s.Access.Trial(ctx, r.GetTrialName(), Get)
	if err != nil {
		return nil, err
	}
	points, err := s.Store.Points(ctx, trial, observation.Query{
		Metric: r.GetMetric(), Start: boundOf(r.GetStart()), End: boundOf(r.GetEnd()), Limit: int(r.GetLimit()),
	})
	if err != nil {
		return nil, failure("read", trial, err)
	}
	return &wire.PointsReply{Points: ToWire(points)}, nil
}

// DeleteSource forgets a source of a trial that still runs.
func (s storeServer) DeleteSource(ctx context.Context, r *wire.DeleteSourceRequest) (*wire.DeleteSourceReply, error) {
	trial, err := s.Access.Trial(ctx, r.GetTrialName(), Update)
	if err != nil {
		return nil, err
	}
	if err := s.Store.DeleteSource(ctx, trial, r.GetSource()); err != nil {
		return nil, failure("delete", trial, err)
	}
	return &wire.DeleteSourceReply{}, nil
}

// Delete forgets a trial.
func (s storeServer) Delete(ctx context.Context, r *wire.DeleteRequest) (*wire.DeleteReply, error) {
	trial, err := s.Access.Trial(ctx, r.GetTrialName(), Delete)
	if err != nil {
		return nil, err
	}
	if err := s.Store.Delete(ctx, trial); err != nil {
		return nil, failure("delete", trial, err)
	}
	return &wire.DeleteReply{}, nil
}

// maxWarning limits a warning, in bytes: the limit of an event.
const maxWarning = 1024

// Warn forwards problems with the metrics of a running trial.
func (s storeServer) Warn(ctx context.Context, r *wire.WarnRequest) (*wire.WarnReply, error) {
	trial, err := s.Access.Trial(ctx, r.GetTrialName(), Update)
	if err != nil {
		return nil, err
	}
	if message := r.GetMessage(); s.Config.Warn != nil && message != "" {
		if err := s.Config.Warn(ctx, trial, strings.ToValidUTF8(message[:min(len(message), maxWarning)], "")); err != nil {
			return nil, failure("warn about", trial, err)
		}
	}
	return &wire.WarnReply{}, nil
}
