// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// settings reads an algorithm's settings, which are texts, and collects what
// is wrong with them.
type settings struct {
	values   map[string]string
	problems []error
}

// within is a range of numbers that a setting may have, and how a message says
// so.
type within struct {
	holds func(float64) bool
	text  string
}

var (
	notNegative  = within{func(v float64) bool { return v >= 0 }, "from 0"}
	positive     = within{func(v float64) bool { return v > 0 }, "greater than 0"}
	unitInterval = within{func(v float64) bool { return v >= 0 && v <= 1 }, "from 0 to 1"}
	openUnit     = within{func(v float64) bool { return v > 0 && v < 1 }, "between 0 and 1"}
)

// atLeast is the range of numbers from least.
func atLeast(least float64) within {
	return within{func(v float64) bool { return v >= least }, "from " + formatFloat(least)}
}

// has reports whether a setting is given.
func (s *settings) has(name string) bool {
	_, ok := s.values[name]
	return ok
}

// text returns a setting as it is, or a default.
func (s *settings) text(name, byDefault string) string {
	if text, ok := s.values[name]; ok {
		return text
	}
	return byDefault
}

// float returns a setting that is a finite number within a range.
func (s *settings) float(name string, byDefault float64, in within) float64 {
	text, ok := s.values[name]
	if !ok {
		return byDefault
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || !in.holds(v) {
		s.refuse(name, "a number "+in.text)
		return byDefault
	}
	return v
}

// int returns a setting that is a whole number within a range.
func (s *settings) int(name string, byDefault int, in within) int {
	text, ok := s.values[name]
	if !ok {
		return byDefault
	}
	v, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || !in.holds(float64(v)) {
		s.refuse(name, "a whole number "+in.text)
		return byDefault
	}
	return v
}

// bool returns a setting that is true or false.
func (s *settings) bool(name string, byDefault bool) bool {
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

// choice returns a setting that is one of some texts, the first by default.
func (s *settings) choice(name string, choices ...string) string {
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

// seed returns the setting random_state, or a default.
func (s *settings) seed(byDefault uint64) uint64 {
	text, ok := s.values[randomState]
	if !ok {
		return byDefault
	}
	v, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
	if err != nil {
		s.refuse(randomState, "a whole number from 0")
		return byDefault
	}
	return v
}

// require notes a problem unless a setting is given.
func (s *settings) require(name, want string) {
	if !s.has(name) {
		s.problems = append(s.problems, fmt.Errorf("setting %s is missing: want %s", name, want))
	}
}

// refuse notes that a setting is not what is wanted.
func (s *settings) refuse(name, want string) {
	s.problems = append(s.problems, fmt.Errorf("setting %s is %q: want %s", name, s.values[name], want))
}

func (s *settings) err() error { return errors.Join(s.problems...) }
