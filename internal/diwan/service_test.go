// SPDX-License-Identifier: Apache-2.0

package diwan_test

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	manager "diwan.dev/diwan/api/manager/v1beta1"
	"diwan.dev/diwan/internal/tuning/algorithm/server"
	"diwan.dev/diwan/internal/tuning/suggestion"
)

// answers is an algorithm service that answers as a test says.
type answers struct {
	manager.UnimplementedSuggestionServer
	suggest  func(*manager.GetSuggestionsRequest) (*manager.GetSuggestionsReply, error)
	validate func(*manager.ValidateAlgorithmSettingsRequest) error // nil: not implemented
}

func (a *answers) GetSuggestions(_ context.Context, r *manager.GetSuggestionsRequest) (*manager.GetSuggestionsReply, error) {
	return a.suggest(r)
}

func (a *answers) ValidateAlgorithmSettings(ctx context.Context, r *manager.ValidateAlgorithmSettingsRequest) (*manager.ValidateAlgorithmSettingsReply, error) {
	if a.validate == nil {
		return a.UnimplementedSuggestionServer.ValidateAlgorithmSettings(ctx, r)
	}
	return &manager.ValidateAlgorithmSettingsReply{}, a.validate(r)
}

// points suggests values of x.
func points(xs ...string) *manager.GetSuggestionsReply {
	reply := &manager.GetSuggestionsReply{}
	for _, x := range xs {
		reply.ParameterAssignments = append(reply.ParameterAssignments, &manager.GetSuggestionsReply_ParameterAssignments{
			Assignments: []*manager.ParameterAssignment{{Name: "x", Value: x}},
		})
	}
	return reply
}

// always answers the same.
func always(reply *manager.GetSuggestionsReply) *answers {
	return &answers{suggest: func(*manager.GetSuggestionsRequest) (*manager.GetSuggestionsReply, error) { return reply, nil }}
}

// changed is points with a change to the only one.
func changed(change func(*manager.GetSuggestionsReply_ParameterAssignments)) *manager.GetSuggestionsReply {
	reply := points("1")
	change(reply.ParameterAssignments[0])
	return reply
}

// offer runs services and configures them by their names.
func offer(t *testing.T, l *lab, services map[string]manager.SuggestionServer) {
	t.Helper()
	entries := []serviceEntry{{AlgorithmName: "only-image", Image: "example.com/service"}, {AlgorithmName: "gone", Endpoint: "127.0.0.1:1"}}
	for name, service := range services {
		listener, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s := grpc.NewServer()
		manager.RegisterSuggestionServer(s, service)
		go s.Serve(listener)
		t.Cleanup(s.Stop)
		entries = append(entries, serviceEntry{AlgorithmName: name, Endpoint: listener.Addr().String()})
	}
	l.configure(func(c *katibConfig) { c.Runtime.Suggestions = append(c.Runtime.Suggestions, entries...) })
}

// TestAlgorithmServices runs experiments by services of all manners.
func TestAlgorithmServices(t *testing.T) {
	l := newLab(t, func(_ context.Context, pod *corev1.Pod) (string, int32) { return "1", 0 })
	var flaky atomic.Int32
	var settings atomic.Value
	offer(t, l, map[string]manager.SuggestionServer{
		"served-random": &server.Server{Algorithm: "random"},
		"counting": &answers{suggest: func(r *manager.GetSuggestionsRequest) (*manager.GetSuggestionsReply, error) {
			begun := int(r.GetTotalRequestNumber()-r.GetCurrentRequestNumber()) + 1
			settings.Store(fmt.Sprint(r.GetExperiment().GetSpec().GetAlgorithm().GetAlgorithmSettings()))
			if begun == 4 {
				return &manager.GetSuggestionsReply{}, nil // no more
			}
			reply := points(strconv.Itoa(begun)) // fewer than asked for
			reply.ParameterAssignments[0].TrialName = "counting-trial-" + strconv.Itoa(begun)
			reply.ParameterAssignments[0].Labels = map[string]string{"example.com/step": strconv.Itoa(begun)}
			reply.Algorithm = &manager.AlgorithmSpec{AlgorithmSettings: []*manager.AlgorithmSetting{{Name: "begun", Value: strconv.Itoa(begun)}}}
			return reply, nil
		}},
		"flaky": &answers{suggest: func(r *manager.GetSuggestionsRequest) (*manager.GetSuggestionsReply, error) {
			if n := flaky.Add(1); n < 4 {
				return nil, status.Error([]codes.Code{codes.Unavailable, codes.Internal, codes.Unknown}[n-1], "not now")
			}
			return points(make([]string, r.GetCurrentRequestNumber())...), nil // empty texts are in no space
		}},
		"refusing": &answers{validate: func(*manager.ValidateAlgorithmSettingsRequest) error {
			return status.Error(codes.InvalidArgument, "too many parameters")
		}},
		"raising": &answers{validate: func(*manager.ValidateAlgorithmSettingsRequest) error {
			return status.Error(codes.Unknown, "Exception calling application: KeyError")
		}},
		"unwilling": &answers{suggest: func(*manager.GetSuggestionsRequest) (*manager.GetSuggestionsReply, error) {
			return nil, status.Error(codes.InvalidArgument, "no such setting")
		}},
		"too-many": always(points("1", "2", "3", "4", "5", "6")),
		"outside":  always(points("1000")),
		"text":     always(points("one")),
		"nothing":  always(changed(func(p *manager.GetSuggestionsReply_ParameterAssignments) { p.Assignments = nil })),
		"twice": always(changed(func(p *manager.GetSuggestionsReply_ParameterAssignments) {
			p.Assignments = append(p.Assignments, p.Assignments[0])
		})),
		"odd-name":   always(changed(func(p *manager.GetSuggestionsReply_ParameterAssignments) { p.TrialName = "odd-name-A B" })),
		"other-name": always(changed(func(p *manager.GetSuggestionsReply_ParameterAssignments) { p.TrialName = "other" })),
		"same-name":  always(changed(func(p *manager.GetSuggestionsReply_ParameterAssignments) { p.TrialName = "same-name-1" })),
		"label":      always(changed(func(p *manager.GetSuggestionsReply_ParameterAssignments) { p.Labels = map[string]string{"a b": "c"} })),
		"own-label": always(changed(func(p *manager.GetSuggestionsReply_ParameterAssignments) {
			p.Labels = map[string]string{"katib.kubeflow.org/trial": "x"}
		})),
	})
	begin := func(name string) *v1beta1.Experiment {
		return l.experiment(name, 2, 5, func(e *v1beta1.Experiment) { e.Spec.Algorithm.AlgorithmName = name })
	}
	failing := map[string]string{
		"flaky": "x", "refusing": "too many parameters", "raising": "KeyError", "unwilling": "no such setting",
		"too-many": "6 suggestions, but 2", "outside": "1000", "text": "one", "nothing": "x", "twice": "x",
		"odd-name": "trial_name", "other-name": "start with", "same-name": "already used", "label": "label", "own-label": "reserved for the controller",
	}
	running := map[string]*v1beta1.Experiment{}
	for name := range failing {
		running[name] = begin(name)
	}
	served, counting, gone := begin("served-random"), begin("counting"), begin("gone")
	for name, want := range failing {
		l.waitFor(running[name], v1beta1.ConditionFailed, v1beta1.ReasonExperimentFailed)
		if c := running[name].Status.Conditions.Get(v1beta1.ConditionFailed); !strings.Contains(c.Message, want) {
			t.Errorf("%s: the experiment failed with %q, want %q in it", name, c.Message, want)
		}
	}
	if n := flaky.Load(); n != 4 {
		t.Errorf("a service that fails thrice was asked %d times, want 4", n)
	}
	l.waitFor(served, v1beta1.ConditionSucceeded, v1beta1.ReasonExperimentMaxTrialsReached)
	l.waitFor(counting, v1beta1.ConditionSucceeded, v1beta1.ReasonExperimentSuggestionEndReached)
	for i := 1; i <= 3; i++ {
		trial := &v1beta1.Trial{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "counting-trial-" + strconv.Itoa(i)}}
		l.get(trial)
		if a := trial.Spec.ParameterAssignments[0].Value; a != strconv.Itoa(i) || trial.Labels["example.com/step"] != a {
			t.Errorf("trial %s has x=%s and the labels %v", trial.Name, a, trial.Labels)
		}
	}
	if got := fmt.Sprint(settings.Load()); !strings.Contains(got, "begun") || !strings.Contains(got, `"3"`) {
		t.Errorf("the last request bears the settings %s, want those of the last answer", got)
	}
	l.eventually(func() string {
		s := &v1beta1.Suggestion{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: gone.Name}}
		l.get(s)
		c := s.Status.Conditions.Get(v1beta1.ConditionDeploymentReady)
		if c == nil || c.Status != corev1.ConditionFalse || !strings.Contains(c.Message, "127.0.0.1:1") {
			return fmt.Sprintf("a condition that says who does not answer, in %+v", s.Status)
		}
		return ""
	})
	if err := l.client.Delete(t.Context(), gone); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{"nobodys": "served-random"} {
		e := l.manifest(name, 2, 5, func(e *v1beta1.Experiment) { e.Spec.Algorithm.AlgorithmName = name })
		if err := l.client.Create(t.Context(), e); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("an experiment by %s: %v, want %q", name, err, want)
		}
	}
	var all v1beta1.TrialList
	if err := l.client.List(t.Context(), &all, client.InNamespace(l.namespace)); err != nil {
		t.Fatal(err)
	}
	indices := map[string]bool{}
	for _, trial := range all.Items {
		if trial.Labels[v1beta1.LabelExperiment] == served.Name {
			indices[trial.Spec.Labels[suggestion.LabelIndex]] = true
		}
	}
	if len(indices) != 5 || !indices["0"] || !indices["4"] {
		t.Errorf("the trials of the served search are numbered %v, want 0 to 4", indices)
	}
}
