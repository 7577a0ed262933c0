// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Point is one point of a space. It does not change. The zero Point is none.
type Point struct {
	space *Space
	at    []float64 // a coordinate for each axis
}

// Assignment is the value of one parameter as text.
type Assignment struct {
	Name, Value string
}

// Assignments returns the value of each parameter, in the order of the space.
func (p Point) Assignments() []Assignment {
	assignments := make([]Assignment, len(p.at))
	for i, at := range p.at {
		a := &p.space.axes[i]
		assignments[i] = Assignment{a.Name, a.format(at)}
	}
	return assignments
}

// Float returns the value of a double, int or discrete parameter. It panics
// when the space has no such parameter.
func (p Point) Float(name string) float64 {
	a, at := p.axis(name)
	switch a.Kind {
	case KindCategorical:
		panic(fmt.Sprintf("optimize: parameter %q is categorical, and no number", name))
	case KindDiscrete:
		number, err := strconv.ParseFloat(a.List[int(at)], 64)
		if err != nil {
			panic(fmt.Sprintf("optimize: parameter %q: %v", name, err)) // Validate refuses it
		}
		return number
	}
	return at
}

// Int returns the value of an int parameter. It panics when the space has no
// such parameter.
func (p Point) Int(name string) int {
	a, at := p.axis(name)
	if a.Kind != KindInt {
		panic(fmt.Sprintf("optimize: parameter %q is %s, and no int", name, a.Kind))
	}
	return int(at)
}

// Text returns the value of a parameter as text. It panics when the space has
// no such parameter.
func (p Point) Text(name string) string {
	a, at := p.axis(name)
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
