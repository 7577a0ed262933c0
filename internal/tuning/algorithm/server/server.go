// SPDX-License-Identifier: Apache-2.0

// Package server offers the search library as Katib's gRPC services Suggestion
// and EarlyStopping, so that Katib's own controller, or any other program, can
// use it.
//
// A server is stateless: a response depends only on the request. Its state
// travels with the trials and settings that Katib stores: each suggestion has
// its number as a label, and the seed comes back as the setting random_state. So
// servers may be killed, and several may share the work.
package server

import (
	"cmp"
	"context"
	"net"
	"slices"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kubeflow "diwan.dev/diwan/api/kubeflow/v1beta1"
	manager "diwan.dev/diwan/api/manager/v1beta1"
	"diwan.dev/diwan/internal/platform/grpcserver"
	"diwan.dev/diwan/internal/tuning/algorithm"
	"diwan.dev/diwan/internal/tuning/searchspace"
	"diwan.dev/diwan/internal/tuning/suggestion"
)

const (
	// maxTrials limits the suggestions of an experiment, maxMore those of one
	// request.
	maxTrials, maxMore = 1_000_000, 10_000
	// maxRequest bounds a request in bytes: trials are some 200 bytes each.
	maxRequest = 256 << 20
)

// Server answers as both services. Serve runs it.
type Server struct {
	manager.UnimplementedSuggestionServer
	manager.UnimplementedEarlyStoppingServer

	// Algorithm, if set, is the algorithm that answers, whatever a request names.
	Algorithm string
	// EarlyStopping, if set, names the rule that answers, whatever a request
	// names. Its settings are for requests that lack them.
	EarlyStopping *kubeflow.EarlyStoppingSpec
	// Trials, if set, are those that it may stop. Nil: it stops none.
	Trials *Trials
}

// Serve answers on some listeners until ctx ends, and closes them.
func (s *Server) Serve(ctx context.Context, listeners ...net.Listener) error {
	register := func(r grpc.ServiceRegistrar) {
		manager.RegisterSuggestionServer(r, s)
		manager.RegisterEarlyStoppingServer(r, s)
	}
	probes := []string{ // Katib's probes ask by the first two
		"manager.v1beta1.Suggestion", "manager.v1beta1.EarlyStopping",
		manager.Suggestion_ServiceDesc.ServiceName, manager.EarlyStopping_ServiceDesc.ServiceName,
	}
	return grpcserver.Serve(ctx, register, maxRequest, probes, listeners...)
}

// experiment reads an experiment, for the algorithm that answers.
func (s *Server) experiment(m *manager.Experiment) (*kubeflow.Experiment, error) {
	e := algorithm.ExperimentOf(m)
	if s.Algorithm != "" {
		if e.Spec.Algorithm == nil {
			e.Spec.Algorithm = &kubeflow.AlgorithmSpec{}
		}
		e.Spec.Algorithm.AlgorithmName = s.Algorithm
	}
	err := missing(m, e.Spec.Algorithm)
	if err == nil {
		err = searchspace.Check(&e.Spec)
	}
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "cannot search experiment %.300q: %v", e.Name, err)
	}
	return e, nil
}

// ValidateAlgorithmSettings checks whether the algorithm can search an
// experiment.
func (s *Server) ValidateAlgorithmSettings(_ context.Context, r *manager.ValidateAlgorithmSettingsRequest) (*manager.ValidateAlgorithmSettingsReply, error) {
	_, err := s.experiment(r.GetExperiment())
	return &manager.ValidateAlgorithmSettingsReply{}, err
}

// GetSuggestions makes suggestions, fewer than asked for where there are no more.
func (s *Server) GetSuggestions(ctx context.Context, r *manager.GetSuggestionsRequest) (*manager.GetSuggestionsReply, error) {
	more, total := int(r.GetCurrentRequestNumber()), int(r.GetTotalRequestNumber())
	if more < 0 || more > maxMore || total > maxTrials {
		return nil, status.Errorf(codes.InvalidArgument, "current_request_number is %d and total_request_number %d: want 0 to %d, and at most %d", more, total, maxMore, maxTrials)
	}
	e, err := s.experiment(r.GetExperiment())
	if err != nil {
		return nil, err
	}
	past := history(r.GetTrials(), total-more)
	made, settings, err := suggestion.Answer(ctx, e, past, more)
	if ctx.Err() != nil {
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "cannot make suggestions for experiment %.300q: %v", e.Name, err)
	}
	reply := &manager.GetSuggestionsReply{Algorithm: &manager.AlgorithmSpec{AlgorithmName: r.GetExperiment().GetSpec().GetAlgorithm().GetAlgorithmName()}}
	for _, v := range settings {
		reply.Algorithm.AlgorithmSettings = append(reply.Algorithm.AlgorithmSettings, &manager.AlgorithmSetting{Name: v.Name, Value: v.Value})
	}
	for i, a := range made {
		m := &manager.GetSuggestionsReply_ParameterAssignments{Labels: map[string]string{suggestion.LabelIndex: strconv.Itoa(len(past) + i)}}
		for label, value := range a.Labels {
			m.Labels[label] = value
		}
		for _, p := range a.ParameterAssignments {
			m.Assignments = append(m.Assignments, &manager.ParameterAssignment{Name: p.Name, Value: p.Value})
		}
		reply.ParameterAssignments = append(reply.ParameterAssignments, m)
	}
	return reply, nil
}

// history orders trials by suggestion, of which there were so many: by the
// number in their label, others by start time. Missing ones are nil.
func history(messages []*manager.Trial, made int) []*kubeflow.Trial {
	trials := make([]*kubeflow.Trial, max(made, len(messages)))
	var others []*kubeflow.Trial
	names := map[string]bool{}
	for _, m := range messages {
		t := algorithm.TrialOf(m)
		if names[t.Name] {
			continue
		}
		names[t.Name] = true
		i, err := strconv.Atoi(t.Spec.Labels[suggestion.LabelIndex])
		if err != nil || i < 0 || i >= len(trials) || trials[i] != nil {
			others = append(others, t)
			continue
		}
		trials[i] = t
	}
	slices.SortStableFunc(others, func(a, b *kubeflow.Trial) int {
		return cmp.Or(begun(a).Compare(begun(b)), cmp.Compare(a.Name, b.Name))
	})
	for i := range trials {
		if trials[i] == nil && len(others) > 0 {
			trials[i], others = others[0], others[1:]
		}
	}
	return trials
}

// begun is when a trial started; one that has not comes last.
func begun(t *kubeflow.Trial) time.Time {
	if t.Status.StartTime == nil {
		return time.Unix(1<<40, 0)
	}
	return t.Status.StartTime.Time
}
