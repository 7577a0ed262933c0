// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	kubeflow "diwan.dev/diwan/api/kubeflow/v1beta1"
	manager "diwan.dev/diwan/api/manager/v1beta1"
	"diwan.dev/diwan/internal/tuning/algorithm"
	"diwan.dev/diwan/internal/tuning/earlystopping"
	"diwan.dev/diwan/observation"
	"diwan.dev/diwan/optimize/stopping"
)

// ValidateEarlyStoppingSettings checks whether the library has a rule with
// the given settings.
func (s *Server) ValidateEarlyStoppingSettings(_ context.Context, r *manager.ValidateEarlyStoppingSettingsRequest) (*manager.ValidateEarlyStoppingSettingsReply, error) {
	rule, err := s.rule(r.GetEarlyStopping())
	if err == nil && rule == nil {
		err = status.Error(codes.InvalidArgument, "cannot stop trials early: early_stopping.algorithm_name is missing")
	}
	return &manager.ValidateEarlyStoppingSettingsReply{}, err
}

// rule returns the rule that answers, and nil where neither the request nor the
// server names one.
func (s *Server) rule(m *manager.EarlyStoppingSpec) (stopping.Rule, error) {
	spec := algorithm.EarlyStoppingOf(m)
	if s.EarlyStopping != nil {
		settings := slices.Clone(s.EarlyStopping.AlgorithmSettings)
		if spec != nil {
			settings = append(settings, spec.AlgorithmSettings...) // which win
		}
		spec = &kubeflow.EarlyStoppingSpec{AlgorithmName: s.EarlyStopping.AlgorithmName, AlgorithmSettings: settings}
	}
	rule, err := earlystopping.New(spec)
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "cannot stop trials early: %v", err)
	}
	return rule, nil
}

// GetEarlyStoppingRules returns the rule for the next trials, as far as it can
// be fixed in advance; none if no rule is named. It reads the trials' metrics
// from the request's DBManager.
func (s *Server) GetEarlyStoppingRules(ctx context.Context, r *manager.GetEarlyStoppingRulesRequest) (*manager.GetEarlyStoppingRulesReply, error) {
	rule, err := s.rule(r.GetExperiment().GetSpec().GetEarlyStopping())
	if err != nil {
		return nil, err
	}
	if rule == nil {
		return &manager.GetEarlyStoppingRulesReply{}, nil
	}
	objective := r.GetExperiment().GetSpec().GetObjective()
	direction := stopping.Minimize
	if objective.GetType() == manager.ObjectiveType_MAXIMIZE {
		direction = stopping.Maximize
	}
	curves := stopping.NewCurves(direction)
	if err := s.fill(ctx, curves, r, objective.GetObjectiveMetricName()); err != nil {
		return nil, err
	}
	rules := earlystopping.Fixed(rule, curves, objective.GetObjectiveMetricName())
	return &manager.GetEarlyStoppingRulesReply{EarlyStoppingRules: algorithm.Rules(rules)}, nil
}

// fill takes the values of the trials that have ended.
func (s *Server) fill(ctx context.Context, curves *stopping.Curves, r *manager.GetEarlyStoppingRulesRequest, metric string) error {
	conn, err := grpc.NewClient(r.GetDbManagerAddress(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy())
	if err != nil {
		return status.Errorf(codes.InvalidArgument, "cannot use db_manager_address %.300q: %v", r.GetDbManagerAddress(), err)
	}
	defer conn.Close()
	metrics := manager.NewDBManagerClient(conn)
	for i, m := range r.GetTrials() {
		state, ended := endOf(m.GetStatus().GetCondition())
		if !ended {
			continue
		}
		log, err := metrics.GetObservationLog(ctx, &manager.GetObservationLogRequest{TrialName: m.GetName(), MetricName: metric})
		if err != nil {
			return status.Errorf(status.Code(err), "cannot read the metrics of trial %.300q at %.300q: %s", m.GetName(), r.GetDbManagerAddress(), status.Convert(err).Message())
		}
		for step, v := range earlystopping.Values(pointsOf(log.GetObservationLog()), metric) {
			curves.Report(i, step+1, v)
		}
		curves.End(i, state)
	}
	return nil
}

// endOf returns the outcome of a trial from which something can be learned.
func endOf(c manager.TrialStatus_TrialConditionType) (state stopping.State, ended bool) {
	switch c {
	case manager.TrialStatus_SUCCEEDED:
		return stopping.Complete, true
	case manager.TrialStatus_EARLYSTOPPED:
		return stopping.Stopped, true
	case manager.TrialStatus_FAILED, manager.TrialStatus_KILLED:
		return stopping.Failed, true
	}
	return 0, false
}

// pointsOf reads points, which are in order; their times do not count.
func pointsOf(log *manager.ObservationLog) []observation.Point {
	var points []observation.Point
	for _, l := range log.GetMetricLogs() {
		points = append(points, observation.Point{Metric: l.GetMetric().GetName(), Value: l.GetMetric().GetValue()})
	}
	return points
}
