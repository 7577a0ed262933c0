// SPDX-License-Identifier: Apache-2.0

// Package settings reads settings, which are texts by name, as values of a type
// and within a range, and collects what is wrong with them.
package settings

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"diwan.dev/diwan/optimize/internal/decimal"
)

// Reader reads settings. It notes what is wrong with them, and goes on with a
// default.
type Reader struct {
	values   map[string]string
	problems []error
}

// New returns the reader of some settings.
func New(values map[string]string) *Reader { return &Reader{values: values} }

// Range is the numbers that a setting may have.
type Range struct {
	// Holds reports whether a number is one of them.
	Holds func(float64) bool
	// Text is how a message says so, after "a number".
	Text string
}

// Ranges that several settings have.
var (
	NotNegative  = Range{func(v float64) bool { return v >= 0 }, "from 0"}
	Positive     = Range{func(v float64) bool { return v > 0 }, "greater than 0"}
	UnitInterval = Range{func(v float64) bool { return v >= 0 && v <= 1 }, "from 0 to 1"}
	OpenUnit     = Range{func(v float64) bool { return v > 0 && v < 1 }, "between 0 and 1"}
)

// AtLeast is the range of numbers from least.
func AtLeast(least float64) Range {
	return Range{func(v float64) bool { return v >= least }, "from " + decimal.Format(least)}
}

// UpTo is the range of numbers from least to most.
func UpTo(least, most float64) Range {
	return Range{func(v float64) bool { return v >= least && v <= most }, "from " + decimal.Format(least) + " to " + decimal.Format(most)}
}

// Has reports whether a setting is given.
func (s *Reader) Has(name string) bool {
	_, ok := s.values[name]
	return ok
}

// Text returns a setting as it is, or a default.
func (s *Reader) Text(name, byDefault string) string {
	if text, ok := s.values[name]; ok {
		return text
	}
	return byDefault
}

// Float returns a setting that is a finite number within a range.
func (s *Reader) Float(name string, byDefault float64, in Range) float64 {
	text, ok := s.values[name]
	if !ok {
		return byDefault
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || !in.Holds(v) {
		s.refuse(name, "a number "+in.Text)
		return byDefault
	}
	return v
}

// Int returns a setting that is an integer within a range.
func (s *Reader) Int(name string, byDefault int, in Range) int {
	text, ok := s.values[name]
	if !ok {
		return byDefault
	}
	v, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || !in.Holds(float64(v)) {
		s.refuse(name, "an integer "+in.Text)
		return byDefault
	}
	return v
}

// Bool returns a setting that is true or false.
func (s *Reader) Bool(name string, byDefault bool) bool {
	text, ok := s.values[name]
	if !ok {
		return byDefault
	}
	v, err := strconv.ParseBool(strings.ToLower(strings.TrimSpace(text)))
	if err != nil {
		s.refuse(name, "true or false")
		return byDefault
	}
	return v
}

// Choice returns a setting that is one of some texts, the first by default.
func (s *Reader) Choice(name string, choices ...string) string {
	text, ok := s.values[name]
	switch {
	case !ok:
		return choices[0]
	case !slices.Contains(choices, text):
		s.refuse(name, "one of "+strings.Join(choices, ", "))
		return choices[0]
	}
	return text
}

// Seed returns a setting that is an integer of 64 bits from 0.
func (s *Reader) Seed(name string, byDefault uint64) uint64 {
	text, ok := s.values[name]
	if !ok {
		return byDefault
	}
	v, err := strconv.ParseUint(strings.TrimPrefix(strings.TrimSpace(text), "+"), 10, 64)
	if err != nil {
		s.refuse(name, "an integer from 0")
		return byDefault
	}
	return v
}

// Require notes a problem unless a setting is given.
func (s *Reader) Require(name, want string) {
	if !s.Has(name) {
		s.problems = append(s.problems, fmt.Errorf("setting %s is missing: want %s", name, want))
	}
}

// refuse records that a setting is invalid.
func (s *Reader) refuse(name, want string) {
	s.problems = append(s.problems, fmt.Errorf("setting %s is %q: want %s", name, s.values[name], want))
}

// Err returns what is wrong with the settings read so far.
func (s *Reader) Err() error { return errors.Join(s.problems...) }
