// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"

	"diwan.dev/diwan/optimize/stopping"
)

// LoadStudy returns the study that [Study.Save] wrote. Its next suggestions are
// those that the saved one would have made.
func LoadStudy(data []byte, o LoadOptions) (*Study, error) {
	s, err := loadStudy(data, o)
	if err != nil {
		return nil, fmt.Errorf("cannot load study: %w", err)
	}
	return s, nil
}

func loadStudy(data []byte, o LoadOptions) (*Study, error) {
	doc, err := decodeSaved(data)
	if err != nil {
		return nil, err
	}
	space, err := doc.space(o.Space)
	if err != nil {
		return nil, err
	}
	sampler, err := doc.sampler(space, o.Sampler)
	if err != nil {
		return nil, err
	}
	history, err := doc.history(space)
	if err != nil {
		return nil, err
	}
	s := ResumeStudy(history, sampler)
	for i, t := range doc.Trials {
		for _, r := range t.Reports {
			s.curves.Report(i, r.Step, float64(r.Value))
		}
		if state := history.trials[i].curveState(); len(t.Reports) > 0 || state != stopping.Running {
			s.curves.End(i, state)
		}
	}
	for i, t := range doc.Queue {
		p, err := t.point(space)
		if err != nil {
			return nil, fmt.Errorf("queue[%d]: %w", i, err)
		}
		s.queue = append(s.queue, p)
	}
	return s, nil
}

// decodeSaved reads the JSON.
func decodeSaved(data []byte) (*saved, error) {
	version := struct{ Version int }{}
	if err := json.Unmarshal(data, &version); err != nil {
		return nil, err
	}
	switch {
	case version.Version == 0:
		return nil, errors.New("it has no version: want what Study.Save writes")
	case version.Version != savedVersion:
		return nil, fmt.Errorf("version is %d: this program reads version %d", version.Version, savedVersion)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	doc := &saved{}
	if err := decoder.Decode(doc); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("trailing data after the object")
	}
	return doc, nil
}

// space returns the space that is saved, or the one given in its place.
func (d *saved) space(given *Space) (*Space, error) {
	parameters := make([]Parameter, len(d.Parameters))
	for i, p := range d.Parameters {
		parameters[i] = Parameter(p)
	}
	if given == nil {
		switch {
		case len(d.Constraints) > 0:
			return nil, fmt.Errorf("space has constraints %q: %w: set LoadOptions.Space", d.Constraints, ErrNotSaved)
		case d.Presented:
			return nil, fmt.Errorf("space has a presentation: %w: set LoadOptions.Space", ErrNotSaved)
		}
		return NewSpace(parameters...)
	}
	if err := given.check(); err != nil {
		return nil, err
	}
	restored, err := NewSpace(parameters...)
	if err != nil {
		return nil, err
	}
	if given.Len() != restored.Len() {
		return nil, fmt.Errorf("LoadOptions.Space has %d parameters: want the %d saved ones", given.Len(), restored.Len())
	}
	for i := range restored.axes {
		if a, b := given.axes[i].Parameter, restored.axes[i].Parameter; !reflect.DeepEqual(a.tidy(), b.tidy()) {
			return nil, fmt.Errorf("parameter %q of LoadOptions.Space differs from the saved one: got %+v, want %+v", a.Name, a, b)
		}
	}
	var names []string
	for _, c := range given.constraints {
		names = append(names, c.Name)
	}
	if !slices.Equal(names, d.Constraints) {
		return nil, fmt.Errorf("LoadOptions.Space has constraints %q: want the saved ones, %q", names, d.Constraints)
	}
	if given.presented() != d.Presented {
		return nil, fmt.Errorf("LoadOptions.Space has a presentation: %t: want %t", given.presented(), d.Presented)
	}
	return given, nil
}

// tidy returns the parameter with nil for empty lists, which mean the same.
func (p Parameter) tidy() Parameter {
	if len(p.List) == 0 {
		p.List = nil
	}
	if len(p.Where) == 0 {
		p.Where = nil
	}
	return p
}

// sampler recreates the sampler.
func (d *saved) sampler(space *Space, own func(*Space) (Sampler, error)) (Sampler, error) {
	switch {
	case own != nil:
		sampler, err := own(space)
		if err == nil && sampler == nil {
			err = errors.New("LoadOptions.Sampler returned nil")
		}
		return sampler, err
	case d.Algorithm == nil:
		return nil, fmt.Errorf("sampler is custom: %w: set LoadOptions.Sampler", ErrNotSaved)
	}
	a := d.Algorithm
	return New(a.Name, a.Settings, Problem{Space: space, Seed: a.Seed, Budget: Budget{MaxTrials: a.MaxTrials, Parallel: a.Parallel}})
}

// history recreates the history.
func (d *saved) history(space *Space) (*History, error) {
	directions := make([]Direction, len(d.Objectives))
	for i, name := range d.Objectives {
		k := slices.Index(objectives(), name)
		if k < 0 {
			return nil, fmt.Errorf("objectives[%d] is %q: want one of %q", i, name, objectives())
		}
		directions[i] = Direction(k)
	}
	if len(directions) == 0 {
		return nil, errors.New("objectives are missing: want at least one")
	}
	h := NewHistory(space, directions...)
	for i, t := range d.Known {
		p, r, err := t.trial(space)
		switch {
		case err == nil && r.State == Lost:
			err = errors.New("it is lost: want a result")
		case err == nil:
			err = h.AddKnown(p, r)
		}
		if err != nil {
			return nil, fmt.Errorf("known[%d]: %w", i, err)
		}
	}
	for i, t := range d.Trials {
		if err := t.addTo(h); err != nil {
			return nil, fmt.Errorf("trials[%d]: %w", i, err)
		}
	}
	return h, nil
}

// addTo appends a trial to a history.
func (t savedTrial) addTo(h *History) error {
	p, r, err := t.trial(h.space)
	switch {
	case err != nil:
		return err
	case r.State == Lost:
		h.AddLost()
		return nil
	}
	i := h.Add(p)
	if r.State == Pending {
		return nil
	}
	return h.Tell(i, r)
}

// trial returns the point, the zero Point for a lost one, and the result.
func (t savedTrial) trial(space *Space) (Point, Result, error) {
	state := slices.Index(states(), t.State)
	if state < 0 {
		return Point{}, Result{}, fmt.Errorf("state is %q: want one of %q", t.State, states())
	}
	r := Result{State: State(state), Values: floatsOf(t.Values), Violations: floatsOf(t.Violations), Step: t.Step}
	if r.State == Lost {
		return Point{}, r, nil
	}
	p, err := t.point(space)
	return p, r, err
}

func floatsOf(numbers []savedNumber) (values []float64) {
	for _, n := range numbers {
		values = append(values, float64(n))
	}
	return values
}

// point returns the point of the trial.
func (t savedTrial) point(space *Space) (Point, error) {
	assignments := make([]Assignment, 0, len(t.Point))
	for i := range space.axes {
		if value, ok := t.Point[space.axes[i].Name]; ok {
			assignments = append(assignments, Assignment{space.axes[i].Name, value})
		}
	}
	if len(assignments) < len(t.Point) {
		for name := range t.Point {
			if _, ok := space.byName[name]; !ok {
				return Point{}, fmt.Errorf("point has a value of %q, which is not a parameter", name)
			}
		}
	}
	p, err := space.parse(assignments)
	if err != nil {
		return Point{}, err
	}
	return p.WithLabels(t.Labels), nil
}
