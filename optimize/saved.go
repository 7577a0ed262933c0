// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// savedVersion is the version of the format that Save writes and LoadStudy
// reads. It changes when an older program would misread the format.
const savedVersion = 1

// saved is a study as JSON. See [Study.Save].
type saved struct {
	Version     int              `json:"version"`
	Algorithm   *savedAlgorithm  `json:"algorithm,omitempty"`
	Parameters  []savedParameter `json:"parameters"`
	Constraints []string         `json:"constraints,omitempty"` // their names
	Presented   bool             `json:"presented,omitempty"`
	Objectives  []string         `json:"objectives"`
	Known       []savedTrial     `json:"known,omitempty"`
	Trials      []savedTrial     `json:"trials"`
	Queue       []savedTrial     `json:"queue,omitempty"`
}

// savedAlgorithm is how New made the sampler.
type savedAlgorithm struct {
	Name      string            `json:"name"`
	Settings  map[string]string `json:"settings,omitempty"`
	Seed      uint64            `json:"seed,string"` // more digits than JSON's numbers hold elsewhere
	MaxTrials int               `json:"maxTrials,omitempty"`
	Parallel  int               `json:"parallel,omitempty"`
}

type savedParameter struct {
	Name         string       `json:"name"`
	Kind         Kind         `json:"kind"`
	Min          float64      `json:"min,omitempty"`
	Max          float64      `json:"max,omitempty"`
	Step         float64      `json:"step,omitempty"`
	Distribution Distribution `json:"distribution,omitempty"`
	Mean         float64      `json:"mean,omitempty"`
	Deviation    float64      `json:"deviation,omitempty"`
	List         []string     `json:"list,omitempty"`
	Parent       string       `json:"parent,omitempty"`
	Where        []string     `json:"where,omitempty"`
}

// savedTrial is a trial, a known result or a point of the queue.
type savedTrial struct {
	Point      map[string]string `json:"point,omitempty"` // by parameter; none of a lost trial
	Labels     map[string]string `json:"labels,omitempty"`
	State      string            `json:"state,omitempty"` // "" of a point of the queue
	Values     []savedNumber     `json:"values,omitempty"`
	Violations []savedNumber     `json:"violations,omitempty"`
	Step       int               `json:"step,omitempty"`
	Reports    []savedReport     `json:"reports,omitempty"`
}

type savedReport struct {
	Step  int         `json:"step"`
	Value savedNumber `json:"value"`
}

// savedNumber is a float64. JSON has no infinite ones, which are texts.
type savedNumber float64

func (n savedNumber) MarshalJSON() ([]byte, error) {
	if v := float64(n); math.IsInf(v, 0) {
		return json.Marshal(fmt.Sprint(v))
	}
	return json.Marshal(float64(n))
}

func (n *savedNumber) UnmarshalJSON(data []byte) error {
	switch string(data) {
	case `"+Inf"`:
		*n = savedNumber(math.Inf(1))
	case `"-Inf"`:
		*n = savedNumber(math.Inf(-1))
	default:
		return json.Unmarshal(data, (*float64)(n))
	}
	return nil
}

// states are the names of the states of suggestions.
func states() []string {
	return []string{Pending: "pending", Complete: "complete", Failed: "failed", Infeasible: "infeasible", Stopped: "stopped", Lost: "lost"}
}

// objectives are the names of directions.
func objectives() []string { return []string{Minimize: "minimize", Maximize: "maximize"} }

// Save returns the study as JSON, from which [LoadStudy] makes one that suggests
// the same points, in any process. The form, version 1, is an object:
//
//   - version: 1.
//   - algorithm: how [New] made the sampler, by its name, settings, seed (as
//     text), maxTrials and parallel; absent for a sampler of the program's own.
//   - parameters: the fields of each [Parameter]; those that are zero are absent.
//   - constraints: the names of the space's constraints; presented: true where
//     the space has a [Presentation]. Both are functions, which are not saved.
//   - objectives: minimize or maximize for each.
//   - trials: the suggestions in their order. Each has its point, the text of
//     each parameter's value by name; the point's labels, which samplers read;
//     its state, one of pending, complete, failed, infeasible, stopped and lost;
//     values, violations and step of its [Result]; and what was reported of it
//     to [Study.Report]. Infinite numbers are the texts +Inf and -Inf.
//   - known: the results from elsewhere, in the same form.
//   - queue: the points and labels that [Study.Enqueue] has waiting.
//
// The early stopping rule is not saved: set it again with [Study.StopEarly]. Text
// that is not UTF-8 cannot be saved.
func (s *Study) Save() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	doc, err := s.saved()
	if err != nil {
		return nil, fmt.Errorf("cannot save study: %w", err)
	}
	data, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("cannot save study: %w", err)
	}
	return data, nil
}

func (s *Study) saved() (*saved, error) {
	h := s.history
	if err := h.space.check(); err != nil {
		return nil, err
	}
	doc := &saved{Version: savedVersion, Presented: h.space.presented(), Trials: []savedTrial{}}
	if m, ok := s.sampler.(made); ok {
		doc.Algorithm = &savedAlgorithm{Name: m.name, Settings: m.settings, Seed: m.seed, MaxTrials: m.budget.MaxTrials, Parallel: m.budget.Parallel}
	}
	for i := range h.space.axes {
		doc.Parameters = append(doc.Parameters, savedParameter(h.space.axes[i].Parameter))
	}
	for _, c := range h.space.constraints {
		doc.Constraints = append(doc.Constraints, c.Name)
	}
	for _, d := range h.directions {
		doc.Objectives = append(doc.Objectives, objectives()[d])
	}
	for _, t := range h.known {
		doc.Known = append(doc.Known, savedTrialOf(t))
	}
	for i, t := range h.trials {
		each := savedTrialOf(t)
		for step, value := range s.curves.Reports(i) {
			each.Reports = append(each.Reports, savedReport{step, savedNumber(value)})
		}
		doc.Trials = append(doc.Trials, each)
	}
	for _, p := range s.queue {
		doc.Queue = append(doc.Queue, savedTrial{Point: p.texts(), Labels: p.labels})
	}
	return doc, doc.checkText()
}

func savedTrialOf(t Trial) savedTrial {
	return savedTrial{
		Point: t.Point.texts(), Labels: t.Point.labels, State: states()[t.State],
		Values: numbersOf(t.Values), Violations: numbersOf(t.Violations), Step: t.Step,
	}
}

func numbersOf(values []float64) (numbers []savedNumber) {
	for _, v := range values {
		numbers = append(numbers, savedNumber(v))
	}
	return numbers
}

// texts returns the text of the value of each parameter that a point has, nil
// for the zero Point.
func (p Point) texts() map[string]string {
	if p.space == nil {
		return nil
	}
	texts := make(map[string]string, len(p.at))
	for i, at := range p.at {
		if !math.IsNaN(at) {
			texts[p.space.axes[i].Name] = p.space.axes[i].format(at)
		}
	}
	return texts
}

// checkText returns an error for texts that JSON would change.
func (d *saved) checkText() error {
	texts := append([]string{}, d.Constraints...)
	for _, p := range d.Parameters { // whose values are all that points have
		texts = append(append(append(texts, p.Name), p.List...), p.Where...)
	}
	maps := []map[string]string{}
	if d.Algorithm != nil {
		maps = append(maps, d.Algorithm.Settings)
	}
	for _, list := range [][]savedTrial{d.Known, d.Trials, d.Queue} {
		for _, t := range list {
			maps = append(maps, t.Labels)
		}
	}
	for _, m := range maps {
		for name, value := range m {
			texts = append(texts, name, value)
		}
	}
	for _, text := range texts {
		if !utf8.ValidString(text) {
			return fmt.Errorf("text %q is not UTF-8, which JSON needs", text)
		}
	}
	return nil
}

// presented reports whether the space has a presentation.
func (s *Space) presented() bool { return s.shown.Write != nil || s.shown.Read != nil }

// made is a sampler that New made, and how.
type made struct {
	Sampler
	name     string
	settings map[string]string
	seed     uint64
	budget   Budget
}

// LoadOptions give [LoadStudy] what JSON cannot hold.
type LoadOptions struct {
	// Space is needed where the study's has constraints or a presentation: the
	// space with its parameters, constraints of the same names, and presentation.
	// Otherwise it is made from the JSON.
	Space *Space
	// Sampler is needed where [New] did not make the study's: it returns the
	// sampler for the study's space. Where it is set, it wins.
	Sampler func(space *Space) (Sampler, error)
}

// ErrNotSaved is wrapped by errors about what a saved study needs in
// [LoadOptions].
var ErrNotSaved = errors.New("it is not saved")
