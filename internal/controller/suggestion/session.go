// SPDX-License-Identifier: Apache-2.0

package suggestion

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/controller/objective"
	"diwan.dev/diwan/internal/controller/trialname"
	"diwan.dev/diwan/internal/searchspace"
	"diwan.dev/diwan/optimize"
)

// randomState is the setting that holds an algorithm's seed.
const randomState = "random_state"

// session is a search under way: a sampler and what it has suggested so far.
type session struct {
	space   *optimize.Space
	sampler optimize.Sampler
	history *optimize.History
	// pending are the indices whose result the history does not have.
	pending []int
}

// trialOf returns the trial of a name, or nil.
type trialOf func(name string) *v1beta1.Trial

// seedFor returns the settings to store for an algorithm that needs a seed and
// was given none. The seed follows from the experiment, so that one that was
// not stored yet is the same again.
func seedFor(experiment types.UID, algorithm string, given map[string]string) []v1beta1.AlgorithmSetting {
	if _, ok := given[randomState]; ok || algorithm == "grid" { // a grid's order is random only on demand
		return nil
	}
	sum := sha256.Sum256([]byte("diwan seed\x00" + string(experiment)))
	seed := binary.BigEndian.Uint32(sum[:4]) >> 1 // Katib's samplers take 31 bits
	return []v1beta1.AlgorithmSetting{{Name: randomState, Value: strconv.FormatUint(uint64(seed), 10)}}
}

// resume builds the session of a suggestion: its sampler, and the history of
// the suggestions made so far, as far as they are still known.
func resume(e *v1beta1.Experiment, s *v1beta1.Suggestion, trial trialOf) (*session, error) {
	algorithm := s.Spec.Algorithm
	switch {
	case algorithm == nil:
		return nil, errors.New("spec.algorithm is missing")
	case s.Spec.EarlyStopping != nil && s.Spec.EarlyStopping.AlgorithmName != "":
		return nil, fmt.Errorf("early stopping algorithm %s is not yet available in this version", s.Spec.EarlyStopping.AlgorithmName)
	case e.Spec.NasConfig != nil:
		return nil, errors.New("spec.nasConfig is not yet available in this version")
	}
	space, err := searchspace.Of(e.Spec.Parameters)
	if err != nil {
		return nil, err
	}
	settings := searchspace.Settings(algorithm.AlgorithmSettings, s.Status.AlgorithmSettings)
	sampler, err := optimize.New(algorithm.AlgorithmName, settings, optimize.Problem{Space: space, Budget: searchspace.Budget(&e.Spec)})
	if err != nil {
		return nil, err
	}
	x := &session{space: space, sampler: sampler, history: optimize.NewHistory(space, searchspace.Direction(e.Spec.Objective))}
	x.remember(e, s, trial)
	return x, nil
}

// remember fills the history.
func (x *session) remember(e *v1beta1.Experiment, s *v1beta1.Suggestion, trial trialOf) {
	made, list := int(s.Status.SuggestionCount), s.Status.Suggestions
	listed := make(map[string]*v1beta1.TrialAssignment, len(list))
	for i := range list {
		listed[list[i].Name] = &list[i]
	}
	for i := range made {
		name := trialname.Of(e.Name, e.UID, i)
		if len(list) == made { // whole, and perhaps named by Katib
			name = list[i].Name
		}
		var assignments []v1beta1.ParameterAssignment
		if t := trial(name); t != nil {
			assignments = t.Spec.ParameterAssignments
		} else if a := listed[name]; a != nil {
			assignments = a.ParameterAssignments
		}
		point, err := searchspace.Point(x.space, assignments)
		if err != nil { // nobody knows it any more
			x.history.AddLost()
			continue
		}
		x.pending = append(x.pending, x.history.Add(point))
	}
}

// learn tells the history how trials ended that were pending. name gives the
// trial's name by index.
func (x *session) learn(name func(index int) string, trial trialOf) error {
	var errs []error
	x.pending = slices.DeleteFunc(x.pending, func(i int) bool {
		t := trial(name(i))
		if t == nil || !t.IsCompleted() {
			return false
		}
		result := optimize.Result{State: optimize.Failed}
		if score := objective.Of(t); score.Kind == objective.Number && !t.Status.Conditions.IsTrue(v1beta1.ConditionFailed) {
			result = optimize.Values(score.Value)
		}
		if err := x.history.Tell(i, result); err != nil {
			errs = append(errs, err)
		}
		return true
	})
	return errors.Join(errs...)
}

// extend makes suggestions until there are as many as requested, and writes
// them into a status that stands where the session does.
func (x *session) extend(ctx context.Context, status *v1beta1.SuggestionStatus, requests int32, name func(index int) string) error {
	for status.SuggestionCount < requests {
		point, err := x.sampler.Sample(ctx, x.history)
		if err != nil {
			return err
		}
		index := x.history.Add(point)
		x.pending = append(x.pending, index)
		status.Suggestions = append(status.Suggestions, v1beta1.TrialAssignment{
			Name: name(index), ParameterAssignments: searchspace.Assignments(point),
		})
		status.SuggestionCount++
	}
	return nil
}
