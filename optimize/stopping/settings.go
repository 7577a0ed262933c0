// SPDX-License-Identifier: Apache-2.0

package stopping

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// reader parses settings into fields with defaults, and collects errors.
type reader struct {
	settings map[string]string
	problems []error
}

func (s *reader) checkNames(known []string) {
	for _, name := range slices.Sorted(maps.Keys(s.settings)) {
		if !slices.Contains(known, name) {
			s.problems = append(s.problems, fmt.Errorf("unknown setting %q: want one of %s", name, strings.Join(slices.Sorted(slices.Values(known)), ", ")))
		}
	}
}

func (s *reader) require(name string) {
	if _, ok := s.settings[name]; !ok {
		s.problems = append(s.problems, fmt.Errorf("setting %s is required", name))
	}
}

func (s *reader) int(name string, field *int) { s.parse(name, field, "an integer") }

// intOrAuto reads auto as 0, and 0 as a mistake.
func (s *reader) intOrAuto(name string, field *int) {
	if s.settings[name] == "auto" {
		*field = 0
		return
	}
	s.parse(name, field, "auto or an integer from 1")
	if _, ok := s.settings[name]; ok && *field == 0 {
		s.refuse(name, "auto or an integer from 1")
	}
}

func (s *reader) parse(name string, field *int, want string) {
	if text, ok := s.settings[name]; ok {
		value, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil {
			s.refuse(name, want)
			return
		}
		*field = value
	}
}

func (s *reader) float(name string, field *float64) {
	if text, ok := s.settings[name]; ok {
		value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil || math.IsNaN(value) {
			s.refuse(name, "a number")
			return
		}
		*field = value
	}
}

func (s *reader) refuse(name, want string) {
	s.problems = append(s.problems, fmt.Errorf("setting %s is %q: want %s", name, s.settings[name], want))
}

// atLeast returns an error where the value of a setting is less than the least.
func atLeast(name string, value, least int) error {
	if value < least {
		return fmt.Errorf("setting %s is %d: want an integer from %d", name, value, least)
	}
	return nil
}
