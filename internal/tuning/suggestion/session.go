// SPDX-License-Identifier: Apache-2.0

package suggestion

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/earlystopping"
	"diwan.dev/diwan/internal/tuning/objective"
	"diwan.dev/diwan/internal/tuning/searchspace"
	"diwan.dev/diwan/internal/tuning/trialname"
	"diwan.dev/diwan/optimize"
)

// randomState is the setting that holds an algorithm's seed.
const randomState = "random_state"

// session is a running search: a sampler and its suggestions so far.
type session struct {
	space   *optimize.Space
	sampler optimize.Sampler
	history *optimize.History
	// initial are the points with which the search begins.
	initial []optimize.Point
	// indices are the indexes of the suggestions by trial name, and names the
	// trial names given by Katib, which cannot be derived from the index.
	indices map[string]int
	names   map[int]string
	// of is the experiment whose trials are named.
	of struct {
		name string
		uid  types.UID
	}
	// pending are the indices whose result the history does not have.
	pending []int
	// made are the newest suggestions of the history: they may not be stored yet.
	made []v1beta1.TrialAssignment
}

// continues reports whether the session can go on from a status that has count
// suggestions: it stands there, or is ahead of it by some that were made and
// could not be stored.
func (x *session) continues(count int) bool {
	ahead := x.history.Len() - count
	return ahead >= 0 && ahead <= len(x.made)
}

// trialOf returns the trial of a name, or nil.
type trialOf func(name string) *v1beta1.Trial

// seedFor returns the settings to store for an algorithm that takes a seed and
// was given none.
func seedFor(experiment types.UID, algorithm string, given map[string]string) []v1beta1.AlgorithmSetting {
	if _, ok := given[randomState]; ok || algorithm == "grid" { // a grid's order is random only on demand
		return nil
	}
	takes := func(a optimize.Algorithm) bool {
		return a.Name == algorithm && slices.Contains(a.Settings, randomState)
	}
	if !slices.ContainsFunc(optimize.Known(), takes) {
		return nil
	}
	return []v1beta1.AlgorithmSetting{{Name: randomState, Value: strconv.FormatUint(seedOf(experiment), 10)}}
}

// seedOf returns the seed of a search, which follows from the experiment, so
// that one that was not stored yet is the same again.
func seedOf(experiment types.UID) uint64 {
	sum := sha256.Sum256([]byte("diwan seed\x00" + string(experiment)))
	return uint64(binary.BigEndian.Uint32(sum[:4]) >> 1) // Katib's samplers take 31 bits
}

// resume builds the session of a suggestion: its sampler, and the history of
// the suggestions made so far, as far as they are still known.
func resume(e *v1beta1.Experiment, s *v1beta1.Suggestion, trial trialOf, sources []*optimize.History) (*session, error) {
	algorithm := s.Spec.Algorithm
	if algorithm == nil {
		return nil, errors.New("spec.algorithm is missing")
	}
	if _, err := earlystopping.New(s.Spec.EarlyStopping); err != nil && !stopsOutside(s.Spec.EarlyStopping) {
		return nil, err
	}
	space, err := searchspace.Of(&e.Spec)
	if err != nil {
		return nil, err
	}
	settings := searchspace.Settings(algorithm.AlgorithmSettings, s.Status.AlgorithmSettings)
	sampler, err := optimize.New(algorithm.AlgorithmName, settings, optimize.Problem{Space: space, Seed: seedOf(e.UID), Budget: searchspace.Budget(&e.Spec)})
	if err != nil {
		return nil, err
	}
	if len(sources) > 0 {
		if sampler, err = optimize.NewTransfer(sampler, space, sources, seedOf(e.UID), optimize.DefaultTransferConfig()); err != nil {
			return nil, err
		}
	}
	initial, err := searchspace.Initial(&e.Spec, space)
	if err != nil {
		return nil, err
	}
	x := &session{space: space, sampler: sampler, initial: initial, history: optimize.NewHistory(space, searchspace.Directions(e.Spec.Objective)...), indices: map[string]int{}, names: map[int]string{}}
	x.of.name, x.of.uid = e.Name, e.UID
	x.remember(s, trial)
	return x, nil
}

// name returns the name of a suggestion's trial.
func (x *session) name(index int) string {
	if name, ok := x.names[index]; ok {
		return name
	}
	return trialname.Of(x.of.name, x.of.uid, index)
}

// given reports whether a name was not made here.
func (x *session) given(name string) bool {
	index, ok := x.indices[name]
	return ok && x.names[index] == name
}

// remember fills the history. Suggestions that Katib made and named are the
// first, and stay in the list.
func (x *session) remember(s *v1beta1.Suggestion, trial trialOf) {
	made, list := int(s.Status.SuggestionCount), s.Status.Suggestions
	listed := make(map[string]*v1beta1.TrialAssignment, len(list))
	for i := range list {
		listed[list[i].Name] = &list[i]
		_, ours := trialname.Index(x.of.name, x.of.uid, list[i].Name, made)
		if !ours || (len(list) == made && list[i].Name != x.name(i)) {
			x.names[i] = list[i].Name
		}
	}
	for i := range made {
		name := x.name(i)
		x.indices[name] = i
		var assignments []v1beta1.ParameterAssignment
		var labels map[string]string
		if t := trial(name); t != nil {
			assignments, labels = t.Spec.ParameterAssignments, t.Spec.Labels
		} else if a := listed[name]; a != nil {
			assignments, labels = a.ParameterAssignments, a.Labels
		}
		point, err := searchspace.Point(x.space, assignments)
		if err != nil { // nobody knows it any more
			x.history.AddLost()
			continue
		}
		x.pending = append(x.pending, x.history.Add(point.WithLabels(x.readLabels(labels))))
	}
}

// learn tells the history the results of pending trials that have ended.
func (x *session) learn(trial trialOf) error {
	var errs []error
	x.pending = slices.DeleteFunc(x.pending, func(i int) bool {
		t := trial(x.name(i))
		if t == nil || !t.IsCompleted() || t.IsStopping() {
			return false
		}
		if err := x.history.Tell(i, outcome(t)); err != nil {
			errs = append(errs, err)
		}
		return true
	})
	return errors.Join(errs...)
}

// outcome returns the result of a trial that has ended.
func outcome(t *v1beta1.Trial) optimize.Result {
	is := t.Status.Conditions.IsTrue
	values, known := objective.Values(t)
	result := optimize.Result{State: optimize.Complete, Values: values, Violations: objective.Violations(t)}
	unknown := !known || slices.ContainsFunc(result.Violations, func(v float64) bool { return math.IsInf(v, 1) })
	switch {
	case unknown && is(v1beta1.ConditionEarlyStopped):
		return optimize.Result{State: optimize.Stopped}
	case unknown || is(v1beta1.ConditionFailed) || is(v1beta1.ConditionKilled):
		return optimize.Result{State: optimize.Failed}
	case is(v1beta1.ConditionEarlyStopped):
		result.State, result.Step = optimize.Stopped, int(t.Status.StoppedAtStep)
	}
	return result
}

// extend makes suggestions until there are as many as requested, and writes them
// into a status from which the session continues: first those that were made
// before. rules are the early stopping rules for new trials.
func (x *session) extend(ctx context.Context, status *v1beta1.SuggestionStatus, requests int32, rules []v1beta1.EarlyStoppingRule) error {
	x.made = x.made[len(x.made)-(x.history.Len()-int(status.SuggestionCount)):]
	for i := 0; status.SuggestionCount < requests; i++ {
		if i == len(x.made) {
			if err := x.add(ctx, rules); err != nil {
				return err
			}
		}
		status.Suggestions = append(status.Suggestions, *x.made[i].DeepCopy())
		status.SuggestionCount++
	}
	return nil
}

// add makes a suggestion.
func (x *session) add(ctx context.Context, rules []v1beta1.EarlyStoppingRule) error {
	point, err := x.next(ctx)
	if err != nil {
		return err
	}
	index := x.history.Add(point)
	x.pending = append(x.pending, index)
	name := x.name(index)
	x.indices[name] = index
	x.made = append(x.made, v1beta1.TrialAssignment{
		Name: name, ParameterAssignments: searchspace.Assignments(point),
		EarlyStoppingRules: rules, Labels: writeLabels(point.Labels(), x.name),
	})
	return nil
}

// next returns the next point to suggest.
func (x *session) next(ctx context.Context) (optimize.Point, error) {
	if i := x.history.Len(); i < len(x.initial) {
		return x.initial[i], nil
	}
	return x.sampler.Sample(ctx, x.history)
}
