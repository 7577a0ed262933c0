// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

// Point is one point of a space. It does not change. The zero Point is none.
type Point struct {
	space  *Space
	at     []float64 // a coordinate for each axis, not a number where the parameter does not exist
	labels map[string]string
}

// Assignment is the value of one parameter as text.
type Assignment struct {
	Name, Value string
}

// Assignments returns the value of each parameter that the point has, in the
// order of the space, or as converted by the space's presentation.
func (p Point) Assignments() []Assignment {
	assignments := make([]Assignment, 0, len(p.at))
	for i, at := range p.at {
		if !math.IsNaN(at) {
			a := &p.space.axes[i]
			assignments = append(assignments, Assignment{a.Name, a.format(at)})
		}
	}
	if p.space != nil && p.space.shown.Write != nil {
		return p.space.shown.Write(assignments)
	}
	return assignments
}

// Labels returns the sampler's notes about the suggestion, for itself and for
// the trial, such as the bracket of Hyperband. They do not affect equality of
// points. The caller must not modify the map.
func (p Point) Labels() map[string]string { return p.labels }

// WithLabels returns the point with other labels. The caller does not change
// the map any more.
func (p Point) WithLabels(labels map[string]string) Point {
	p.labels = labels
	return p
}

// Active reports whether the point has a value of a parameter: false for one
// that depends on another which has none of the values needed. It panics when
// the space has no such parameter.
func (p Point) Active(name string) bool {
	_, at := p.axis(name)
	return !math.IsNaN(at)
}

// Float returns the value of a double, int or discrete parameter, or not a
// number where it is not active. It panics when the space has no such
// parameter.
func (p Point) Float(name string) float64 {
	a, at := p.axis(name)
	switch {
	case a.Kind == KindCategorical || a.Kind == KindOrdered:
		panic(fmt.Sprintf("optimize: parameter %q is %s, not a number", name, a.Kind))
	case a.Kind == KindDiscrete && !math.IsNaN(at):
		return a.number(int(at))
	}
	return at
}

// Int returns the value of an int parameter, or 0 where it is not active. It
// panics when the space has no such parameter.
func (p Point) Int(name string) int {
	a, at := p.axis(name)
	switch {
	case a.Kind != KindInt:
		panic(fmt.Sprintf("optimize: parameter %q is %s, not an int", name, a.Kind))
	case math.IsNaN(at):
		return 0
	}
	return int(at)
}

// Text returns the value of a parameter as text, or "" where it is not active.
// It panics when the space has no such parameter.
func (p Point) Text(name string) string {
	a, at := p.axis(name)
	if math.IsNaN(at) {
		return ""
	}
	return a.format(at)
}

// String returns the assignments as name=value, separated by blanks.
func (p Point) String() string {
	var b strings.Builder
	for i, a := range p.Assignments() {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(a.Name + "=" + a.Value)
	}
	return b.String()
}

func (p Point) axis(name string) (*axis, float64) {
	if p.space != nil {
		if i, ok := p.space.byName[name]; ok {
			return &p.space.axes[i], p.at[i]
		}
	}
	panic(fmt.Sprintf("optimize: space has no parameter %q", name))
}

// key returns a text that equal points, and no others, share.
func (p Point) key() string {
	key := make([]byte, 0, 8*len(p.at))
	for _, at := range p.at {
		key = binary.LittleEndian.AppendUint64(key, math.Float64bits(at))
	}
	return string(key)
}

// Presentation converts the points of a space to assignments, if that is not
// one for each parameter: for example, an architecture as one JSON string.
// Either function may be nil: then nothing is converted in that direction.
type Presentation struct {
	// Write converts one assignment for each parameter to those shown.
	Write func(plain []Assignment) []Assignment
	// Read is the inverse of Write. Its error says what is wrong with the
	// assignments.
	Read func(shown []Assignment) ([]Assignment, error)
}

// Presented returns the space with a presentation of its points.
func (s *Space) Presented(p Presentation) *Space {
	presented := *s
	presented.shown = p
	return &presented
}
