// SPDX-License-Identifier: Apache-2.0

package asktell

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	asktell "diwan.dev/diwan/api/asktell/v1"
	"diwan.dev/diwan/api/kubeflow/v1beta1"
)

// Create creates an experiment whose trials are asked for.
func (s *Server) Create(ctx context.Context, r *asktell.CreateRequest) (*asktell.CreateReply, error) {
	e, err := experimentOf(r)
	if err != nil {
		return nil, err
	}
	if e.Namespace, err = s.Access.Namespace(ctx, r.GetNamespace(), "create", "experiments"); err != nil {
		return nil, err
	}
	wanted := e.DeepCopy()
	wanted.SetDefaults()
	err = s.API.Create(ctx, e)
	if apierrors.IsAlreadyExists(err) {
		there := &v1beta1.Experiment{}
		if err = s.API.Get(ctx, client.ObjectKeyFromObject(e), there); err == nil && !equality.Semantic.DeepEqual(there.Spec, wanted.Spec) {
			return nil, status.Errorf(codes.AlreadyExists, "experiment %s/%s already exists with a different spec: choose another name, or delete it", e.Namespace, e.Name)
		}
	}
	if err != nil {
		return nil, failure(fmt.Sprintf("create experiment %s/%s", e.Namespace, e.Name), err)
	}
	return &asktell.CreateReply{Namespace: e.Namespace}, nil
}

// experimentOf reads the experiment of a request.
func experimentOf(r *asktell.CreateRequest) (*v1beta1.Experiment, error) {
	text, err := r.GetSpec().MarshalJSON()
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "cannot parse spec: %v", err)
	}
	e := &v1beta1.Experiment{}
	e.Name = r.GetName()
	if err := json.Unmarshal(text, &e.Spec); err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "spec is not an Experiment spec: %v", err)
	}
	if e.Spec.TrialTemplate == nil {
		e.Spec.TrialTemplate = &v1beta1.TrialTemplate{}
		e.Spec.TrialTemplate.External = &v1beta1.ExternalTrials{}
	}
	if e.Spec.TrialTemplate.External == nil {
		return nil, status.Error(codes.InvalidArgument, "spec.trialTemplate.external is missing: without it programs cannot ask for trials; create other Experiments through the Kubernetes API")
	}
	return e, nil
}

// Get returns an experiment's progress.
func (s *Server) Get(ctx context.Context, r *asktell.GetRequest) (*asktell.GetReply, error) {
	namespace, err := s.Access.Namespace(ctx, r.GetNamespace(), "get", "experiments")
	if err != nil {
		return nil, err
	}
	e, err := s.experiment(ctx, namespace, r.GetExperiment())
	if err != nil {
		return nil, err
	}
	reply := &asktell.GetReply{
		Trials: e.Status.Trials, Pending: e.Status.TrialsPending, Running: e.Status.TrialsRunning,
		Succeeded: e.Status.TrialsSucceeded, EarlyStopped: e.Status.TrialsEarlyStopped,
		Failed: e.Status.TrialsFailed + e.Status.TrialMetricsUnavailable,
	}
	if n := len(e.Status.Conditions); n > 0 {
		c := e.Status.Conditions[n-1]
		reply.Condition, reply.Message = string(c.Type), c.Message
	}
	if best := &e.Status.CurrentOptimalTrial; best.BestTrialName != "" {
		reply.Best = &asktell.Best{Trial: best.BestTrialName, Parameters: valuesOf(e, best.ParameterAssignments), Metrics: metricsOf(e, best.Observation.Metrics)}
	}
	return reply, nil
}

// trialOf is the trial that a program was given.
func trialOf(e *v1beta1.Experiment, t *v1beta1.Trial) *asktell.Trial {
	return &asktell.Trial{
		Namespace: t.Namespace, Name: t.Name, Lease: t.Status.Lease.ID, LeaseSeconds: t.Spec.External.Term().Seconds(),
		Attempt: t.Status.Lease.Attempt, Parameters: valuesOf(e, t.Spec.ParameterAssignments),
	}
}

// valuesOf are the values of parameters, numbers as such.
func valuesOf(e *v1beta1.Experiment, assignments []v1beta1.ParameterAssignment) map[string]*structpb.Value {
	kinds := make(map[string]v1beta1.ParameterType, len(e.Spec.Parameters))
	for _, p := range e.Spec.Parameters {
		kinds[p.Name] = p.ParameterType
	}
	values := make(map[string]*structpb.Value, len(assignments))
	for _, a := range assignments {
		values[a.Name] = valueOf(kinds[a.Name], a.Value)
	}
	return values
}

// maxExact is the greatest integer up to which a double holds every one.
const maxExact = 1 << 53

func valueOf(kind v1beta1.ParameterType, text string) *structpb.Value {
	switch kind {
	case v1beta1.ParameterTypeDouble, v1beta1.ParameterTypeInt, v1beta1.ParameterTypeDiscrete:
		v, err := strconv.ParseFloat(text, 64)
		if err == nil && !math.IsNaN(v) && (kind != v1beta1.ParameterTypeInt || math.Abs(v) <= maxExact) {
			return structpb.NewNumberValue(v)
		}
	}
	return structpb.NewStringValue(text)
}

// metricsOf is what metrics came to by the strategy of the objective.
func metricsOf(e *v1beta1.Experiment, metrics []v1beta1.Metric) map[string]float64 {
	values := map[string]float64{}
	for _, m := range metrics {
		if v, err := strconv.ParseFloat(m.Value(e.Spec.Objective.Strategy(m.Name, "")), 64); err == nil {
			values[m.Name] = v
		}
	}
	return values
}
