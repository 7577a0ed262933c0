// SPDX-License-Identifier: Apache-2.0

package dbmanager

import (
	"context"
	"errors"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"diwan.dev/diwan/api/manager/v1beta1"
	wire "diwan.dev/diwan/api/observation/v1"
	"diwan.dev/diwan/internal/platform/grpcserver"
	"diwan.dev/diwan/observation"
)

// source is the source of the points that come by gRPC. Its offset counts them.
const source = "grpc"

// Where Pods find a DBManager, by Katib's convention.
const (
	ServiceName = "katib-db-manager"
	Port        = 6789
)

// Server answers as a DBManager. Serve runs one.
type Server struct {
	v1beta1.UnimplementedDBManagerServer
	Config
}

// New returns a server.
func New(c Config) *Server { return &Server{Config: c} }

// Serve answers on some listeners until ctx ends, and closes them.
func (s *Server) Serve(ctx context.Context, listeners ...net.Listener) error {
	register := func(r grpc.ServiceRegistrar) {
		v1beta1.RegisterDBManagerServer(r, s)
		wire.RegisterStoreServer(r, storeServer{Server: s})
		if s.Beside != nil {
			s.Beside(r)
		}
	}
	probes := []string{v1beta1.DBManager_ServiceDesc.ServiceName, wire.Store_ServiceDesc.ServiceName}
	return grpcserver.Serve(ctx, register, s.MaxMessage, probes, listeners...)
}

// ReportObservationLog stores points of a trial.
func (s *Server) ReportObservationLog(ctx context.Context, r *v1beta1.ReportObservationLogRequest) (*v1beta1.ReportObservationLogReply, error) {
	points, err := s.points(r.GetObservationLog(), s.Now())
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "cannot store the metrics of trial %.300q: %v", r.GetTrialName(), err)
	}
	trial, err := s.Access.Trial(ctx, r.GetTrialName(), Update)
	if err != nil {
		return nil, err
	}
	if len(points) > 0 {
		if err := s.append(ctx, trial, points); err != nil {
			return nil, failure("store", trial, err)
		}
	}
	return &v1beta1.ReportObservationLogReply{}, nil
}

// append stores points after the existing ones.
func (s *Server) append(ctx context.Context, trial observation.Trial, points []observation.Point) error {
	from, err := s.Store.Offset(ctx, trial, source)
	for err == nil {
		to := from + int64(len(points))
		if to > int64(s.MaxPoints) {
			return status.Errorf(codes.ResourceExhausted, "cannot store %d more data points of trial %s: it has reported %d of at most %d; report less often",
				len(points), trial, from, s.MaxPoints)
		}
		err = s.Store.Append(ctx, trial, observation.Batch{Source: source, From: from, To: to, Points: points})
		var moved *observation.OffsetError
		if !errors.As(err, &moved) {
			return err
		}
		from, err = moved.Have, ctx.Err() // another report came between
	}
	return err
}

// GetObservationLog returns points of a trial.
func (s *Server) GetObservationLog(ctx context.Context, r *v1beta1.GetObservationLogRequest) (*v1beta1.GetObservationLogReply, error) {
	q, err := query(r)
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "cannot read the metrics of trial %.300q: %v", r.GetTrialName(), err)
	}
	trial, err := s.Access.Trial(ctx, r.GetTrialName(), Get)
	if err != nil {
		return nil, err
	}
	points, err := s.Store.Points(ctx, trial, q)
	if err != nil {
		return nil, failure("read", trial, err)
	}
	return &v1beta1.GetObservationLogReply{ObservationLog: logOf(points)}, nil
}

// DeleteObservationLog deletes what a trial reported.
func (s *Server) DeleteObservationLog(ctx context.Context, r *v1beta1.DeleteObservationLogRequest) (*v1beta1.DeleteObservationLogReply, error) {
	trial, err := s.Access.Trial(ctx, r.GetTrialName(), Delete)
	if err != nil {
		return nil, err
	}
	if err := s.Store.Delete(ctx, trial); err != nil {
		return nil, failure("delete", trial, err)
	}
	return &v1beta1.DeleteObservationLogReply{}, nil
}

// failure returns an error of the store with the status that tells clients
// whether to retry.
func failure(verb string, trial observation.Trial, err error) error {
	if _, ok := status.FromError(err); ok {
		return err
	}
	code := codes.Unavailable
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		code = status.FromContextError(err).Code()
	case errors.Is(err, observation.ErrFull):
		code = codes.ResourceExhausted
	case errors.Is(err, observation.ErrCorrupt):
		code = codes.DataLoss
	}
	return status.Errorf(code, "cannot %s the metrics of trial %s: %v", verb, trial, err)
}
