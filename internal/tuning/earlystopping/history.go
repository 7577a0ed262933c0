// SPDX-License-Identifier: Apache-2.0

package earlystopping

import (
	"context"
	"fmt"
	"hash/fnv"
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/observation"
	"diwan.dev/diwan/optimize/stopping"
)

// History has the learning curves of experiments with early stopping. It is a
// cache: an experiment is read when it is first requested, from its trials and
// the store, and kept up to date by its callers. It is safe for concurrent use.
type History struct {
	store  observation.Store
	trials client.Reader

	mu       sync.Mutex
	searches map[types.UID]*search // by experiment
}

// NewHistory returns a history of trials that a cache lists.
func NewHistory(store observation.Store, trials client.Reader) *History {
	return &History{store: store, trials: trials, searches: map[types.UID]*search{}}
}

// search is one experiment. Its lock is held while it is read for the first
// time.
type search struct {
	mu     sync.Mutex
	loaded bool
	rule   stopping.Rule // nil: none of the library's
	curves *stopping.Curves
	known  map[string]*trial // by name
}

// trial is the state of a trial whose curve is kept.
type trial struct {
	number int
	judged int // reports that were judged
	ended  bool
}

// Judge applies the experiment's rule to a running trial that has reported these values of the objective: each
// report is judged once, in order. Of those that existed when the experiment was first requested, only the last is
// judged, since other trials have reported more since.
func (h *History) Judge(ctx context.Context, e *v1beta1.Experiment, t *v1beta1.Trial, values []float64) (Decision, error) {
	s, err := h.search(ctx, e)
	if err != nil || s == nil {
		return Decision{}, err
	}
	defer s.mu.Unlock()
	k := s.trial(t)
	if len(values) < k.judged {
		s.curves.Forget(k.number) // it began anew
		k.judged = 0
	}
	for ; k.judged < len(values); k.judged++ {
		s.curves.Report(k.number, k.judged+1, values[k.judged])
		if v := s.rule.Judge(s.curves, k.number); v.Stop {
			return Decision{k.judged + 1, v.Reason}, nil // and the same again, until it is acted on
		}
	}
	return Decision{}, nil
}

// Fixed returns the rules in Katib's form for a trial that starts now.
func (h *History) Fixed(ctx context.Context, e *v1beta1.Experiment) ([]v1beta1.EarlyStoppingRule, error) {
	s, err := h.search(ctx, e)
	if err != nil || s == nil {
		return nil, err
	}
	defer s.mu.Unlock()
	return Fixed(s.rule, s.curves, e.Spec.Objective.ObjectiveMetricName), nil
}

// End records that a trial has ended. It is idempotent, and may be called for
// trials of experiments that were never requested.
func (h *History) End(ctx context.Context, t *v1beta1.Trial) error {
	s := h.found(t)
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.loaded || s.trial(t).ended {
		return nil
	}
	return h.read(ctx, s, t)
}

// Forget drops the state of a deleted trial.
func (h *History) Forget(t *v1beta1.Trial) {
	s := h.found(t)
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.known[t.Name]; k != nil {
		s.curves.Forget(k.number)
		delete(s.known, t.Name)
	}
}

// Drop forgets an experiment, which has ended or is gone.
func (h *History) Drop(experiment types.UID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.searches, experiment)
}

// found returns the search of a trial's experiment, or nil.
func (h *History) found(t *v1beta1.Trial) *search {
	owner := metav1.GetControllerOf(t)
	if owner == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.searches[owner.UID]
}

// search returns the search of an experiment, read and locked, or nil where the
// experiment has no rule of the library or has ended.
func (h *History) search(ctx context.Context, e *v1beta1.Experiment) (*search, error) {
	if e.Spec.EarlyStopping == nil || e.Spec.Objective == nil || e.IsCompleted() {
		return nil, nil
	}
	h.mu.Lock()
	s := h.searches[e.UID]
	if s == nil {
		s = &search{}
		h.searches[e.UID] = s
	}
	h.mu.Unlock()
	s.mu.Lock()
	if !s.loaded {
		if err := h.load(ctx, s, e); err != nil {
			s.mu.Unlock()
			return nil, fmt.Errorf("cannot read the learning curves of experiment %s/%s: %w", e.Namespace, e.Name, err)
		}
	}
	if s.rule == nil {
		s.mu.Unlock()
		return nil, nil
	}
	return s, nil
}

// load reads an experiment.
func (h *History) load(ctx context.Context, s *search, e *v1beta1.Experiment) error {
	rule, err := ruleFor(e.Spec.EarlyStopping)
	if err != nil {
		return err
	}
	s.rule, s.curves, s.known = rule, stopping.NewCurves(directionOf(e.Spec.Objective)), map[string]*trial{}
	if rule == nil {
		s.loaded = true
		return nil
	}
	var list v1beta1.TrialList
	err = h.trials.List(ctx, &list, client.InNamespace(e.Namespace), client.MatchingLabels{v1beta1.LabelExperiment: e.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return err
	}
	for i := range list.Items {
		if !metav1.IsControlledBy(&list.Items[i], e) {
			continue
		}
		if err := h.read(ctx, s, &list.Items[i]); err != nil {
			return err
		}
	}
	s.loaded = true
	return nil
}

// read reads a trial's reports and outcome.
func (h *History) read(ctx context.Context, s *search, t *v1beta1.Trial) error {
	if t.Spec.Objective == nil {
		return nil
	}
	metric := t.Spec.Objective.ObjectiveMetricName
	points, err := h.store.Points(ctx, observation.Trial{Namespace: t.Namespace, Name: t.Name}, observation.Query{Metric: metric})
	if err != nil {
		return err
	}
	k := s.trial(t)
	s.curves.Forget(k.number)
	values := Values(points, metric)
	for i, v := range values {
		s.curves.Report(k.number, i+1, v)
	}
	k.judged = max(0, len(values)-1)
	if k.ended = t.IsCompleted() && !t.IsStopping(); k.ended {
		s.curves.End(k.number, endOf(t))
	}
	return nil
}

// trial returns the state of a trial, empty for a new one.
func (s *search) trial(t *v1beta1.Trial) *trial {
	k := s.known[t.Name]
	if k == nil {
		k = &trial{number: numberOf(t)}
		s.known[t.Name] = k
	}
	return k
}

// numberOf returns the number of a trial's suggestion; one created by Katib
// has none, and gets an arbitrary one.
func numberOf(t *v1beta1.Trial) int {
	if i, err := strconv.Atoi(t.Annotations[v1beta1.AnnotationTrialIndex]); err == nil && i >= 0 {
		return i
	}
	hash := fnv.New32a()
	hash.Write([]byte(t.Name))
	return int(hash.Sum32() >> 1)
}

// endOf returns the outcome of a trial that has ended.
func endOf(t *v1beta1.Trial) stopping.State {
	switch is := t.Status.Conditions.IsTrue; {
	case is(v1beta1.ConditionKilled), is(v1beta1.ConditionFailed):
		return stopping.Failed
	case is(v1beta1.ConditionSucceeded):
		return stopping.Complete
	case is(v1beta1.ConditionEarlyStopped):
		return stopping.Stopped
	}
	return stopping.Failed // without metrics
}
