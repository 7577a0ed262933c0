// SPDX-License-Identifier: Apache-2.0

package asktell

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	asktell "diwan.dev/diwan/api/asktell/v1"
	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/earlystopping"
	"diwan.dev/diwan/internal/tuning/lease"
	"diwan.dev/diwan/observation"
)

// Report stores a trial's metrics, renews its lease, and returns whether it is
// worth continuing.
func (s *Server) Report(ctx context.Context, r *asktell.ReportRequest) (*asktell.ReportReply, error) {
	t, err := s.caller(ctx, r.GetNamespace(), r.GetTrial(), r.GetLease())
	if err != nil {
		return nil, err
	}
	switch {
	case lease.Is(t, r.GetLease()) && t.IsCompleted():
		return &asktell.ReportReply{Stop: true, Why: last(t).Message}, nil
	case !lease.Held(t, r.GetLease(), s.Clock.Now()):
		return nil, lost(t, r.GetLease())
	}
	if len(r.GetMetrics()) > 0 {
		if r.GetSequence() < 0 || r.GetSequence() >= s.MaxReports {
			return nil, status.Errorf(codes.InvalidArgument, "sequence is %d: want 0 to %d; report less often", r.GetSequence(), s.MaxReports-1)
		}
		points, err := s.points(r.GetMetrics(), s.instant(r.GetLease()))
		if err != nil {
			return nil, err
		}
		if err := s.store(ctx, t, "lease/"+r.GetLease(), r.GetSequence(), points); err != nil {
			return nil, err
		}
	}
	decision, err := s.judge(ctx, t)
	if err != nil {
		return nil, err
	}
	if err := s.change(ctx, t, func() (bool, error) {
		now := s.Clock.Now()
		if !lease.Held(t, r.GetLease(), now) {
			return false, lost(t, r.GetLease())
		}
		write := lease.Renew(t, now)
		if decision.Stop() && !t.IsStopping() {
			t.Status.Stop(metav1.NewTime(now), decision.Step, decision.Why)
			write = true
		}
		return write, nil
	}); err != nil {
		return nil, err
	}
	reply := &asktell.ReportReply{Stop: t.IsStopping()}
	if c := t.Stopping(); c != nil {
		reply.Why = c.Message
	}
	return reply, nil
}

// caller returns the trial that the caller names, if they may change it.
func (s *Server) caller(ctx context.Context, namespace, trial, id string) (*v1beta1.Trial, error) {
	if id == "" {
		return nil, status.Error(codes.InvalidArgument, "lease is missing: use the one that Ask returned")
	}
	namespace, err := s.Access.Namespace(ctx, namespace, "update", "trials")
	if err != nil {
		return nil, err
	}
	return s.leased(ctx, namespace, trial, id)
}

// last is the condition that a trial has ended with.
func last(t *v1beta1.Trial) v1beta1.Condition {
	if n := len(t.Status.Conditions); n > 0 {
		return t.Status.Conditions[n-1]
	}
	return v1beta1.Condition{}
}

// maxInstants bounds the leases whose last time is remembered.
const maxInstants = 10_000

// instant is the time of a report. Within a lease it never decreases, since it
// orders the values: if the clock is set back, the time stands still.
func (s *Server) instant(id string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.instants) > maxInstants {
		clear(s.instants)
	}
	now := s.Clock.Now().Round(0) // without the monotonic clock
	if last := s.instants[id]; now.Before(last) {
		now = last
	}
	s.instants[id] = now
	return now
}

// points are what one report holds, in the order of the metrics' names.
func (s *Server) points(metrics map[string]float64, now time.Time) ([]observation.Point, error) {
	if len(metrics) > s.MaxMetrics {
		return nil, status.Errorf(codes.InvalidArgument, "metrics has %d entries: want at most %d", len(metrics), s.MaxMetrics)
	}
	points := make([]observation.Point, 0, len(metrics))
	for _, name := range slices.Sorted(maps.Keys(metrics)) {
		if name == "" || len(name) > maxMetricName || !utf8.ValidString(name) {
			return nil, status.Errorf(codes.InvalidArgument, "metrics has the name %.80q: want 1 to %d bytes of text", name, maxMetricName)
		}
		points = append(points, observation.Point{Time: now, Metric: name, Value: strconv.FormatFloat(metrics[name], 'g', -1, 64)})
	}
	batch := observation.Batch{Source: "lease", To: 1, Points: points}
	if err := batch.Check(); err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "metrics: %v", err)
	}
	return points, nil
}

// store stores a report of a lease, once, before the lease runs out.
func (s *Server) store(ctx context.Context, t *v1beta1.Trial, source string, number int64, points []observation.Point) error {
	ctx, cancel := context.WithTimeout(ctx, lease.Expiry(t).Sub(s.Clock.Now()))
	defer cancel()
	name := observation.Trial{Namespace: t.Namespace, Name: t.Name}
	err := s.Store.Append(ctx, name, observation.Batch{Source: source, From: number, To: number + 1, Points: points})
	var moved *observation.OffsetError
	switch {
	case errors.As(err, &moved) && moved.Have > number:
		return nil // it was sent before
	case errors.As(err, &moved):
		return status.Errorf(codes.FailedPrecondition, "sequence is %d: want %d, the number of reports so far", number, moved.Have)
	}
	return failure(fmt.Sprintf("store the metrics of trial %s", name), err)
}

// judge decides whether a trial is worth continuing. The trial's controller looks
// too; it may be elsewhere.
func (s *Server) judge(ctx context.Context, t *v1beta1.Trial) (earlystopping.Decision, error) {
	owner := metav1.GetControllerOf(t)
	if owner == nil || t.Spec.Objective == nil || t.IsStopping() || !s.Leads() {
		return earlystopping.Decision{}, nil
	}
	e, err := s.experiment(ctx, t.Namespace, owner.Name)
	if err != nil || e.UID != owner.UID || (e.Spec.EarlyStopping == nil && len(t.Spec.EarlyStoppingRules) == 0) {
		return earlystopping.Decision{}, err
	}
	name := observation.Trial{Namespace: t.Namespace, Name: t.Name}
	points, err := s.Store.Points(ctx, name, observation.Query{})
	if err != nil {
		return earlystopping.Decision{}, failure(fmt.Sprintf("read the metrics of trial %s", name), err)
	}
	decision := earlystopping.Met(t.Spec.EarlyStoppingRules, t.Spec.Objective, points)
	if !decision.Stop() {
		decision, err = s.Stopping.Judge(ctx, e, t, earlystopping.Values(points, t.Spec.Objective.ObjectiveMetricName))
	}
	return decision, failure(fmt.Sprintf("judge trial %s", name), err)
}

// Complete records the outcome of a trial.
func (s *Server) Complete(ctx context.Context, r *asktell.CompleteRequest) (*asktell.CompleteReply, error) {
	if len(r.GetMessage()) > maxMessage || !utf8.ValidString(r.GetMessage()) {
		return nil, status.Errorf(codes.InvalidArgument, "message has %d bytes: want at most %d", len(r.GetMessage()), maxMessage)
	}
	t, err := s.caller(ctx, r.GetNamespace(), r.GetTrial(), r.GetLease())
	if err != nil {
		return nil, err
	}
	if told(t, r.GetLease()) {
		return &asktell.CompleteReply{}, nil
	}
	if !lease.Held(t, r.GetLease(), s.Clock.Now()) {
		return nil, lost(t, r.GetLease())
	}
	if len(r.GetMetrics()) > 0 {
		points, err := s.points(r.GetMetrics(), s.instant(r.GetLease()))
		if err != nil {
			return nil, err
		}
		if err := s.store(ctx, t, "lease/"+r.GetLease()+"/end", 0, points); err != nil {
			return nil, err
		}
	}
	outcome := v1beta1.LeaseSucceeded
	if r.GetFailed() {
		outcome = v1beta1.LeaseFailed
	}
	err = s.change(ctx, t, func() (bool, error) {
		switch {
		case told(t, r.GetLease()):
			return false, nil
		case !lease.Held(t, r.GetLease(), s.Clock.Now()):
			return false, lost(t, r.GetLease())
		}
		lease.Finish(t, outcome, r.GetMessage())
		return true, nil
	})
	return &asktell.CompleteReply{}, err
}

// told reports whether the trial's outcome is already known: from this lease,
// or because others ended the trial while it was held.
func told(t *v1beta1.Trial, id string) bool {
	return lease.Is(t, id) && (t.Status.Lease.Outcome != "" || t.IsCompleted() && !t.IsStopping())
}
