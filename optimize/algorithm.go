// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Algorithm is a sampler that can be asked for by name.
type Algorithm struct {
	// Name is the algorithm's, as in Katib.
	Name string
	// Settings are the names of its settings, sorted.
	Settings []string
	// Available is false for an algorithm of Katib's that this version does
	// not have yet; New and CheckSettings fail with ErrUnavailable for it.
	Available bool
}

// Budget bounds a search. A zero field does not bound.
type Budget struct {
	// MaxTrials is how many suggestions there may be, Parallel how many of
	// them may be pending at once.
	MaxTrials, Parallel int
}

var (
	// ErrUnknown is wrapped by errors about a name that no algorithm has.
	ErrUnknown = errors.New("unknown algorithm")
	// ErrUnavailable is wrapped by errors about an algorithm that this version
	// does not have yet.
	ErrUnavailable = errors.New("not yet available in this version")
)

// Known returns the algorithms by name.
func Known() []Algorithm {
	makers := makers()
	known := make([]Algorithm, 0, len(makers))
	for _, name := range slices.Sorted(maps.Keys(makers)) {
		m := makers[name]
		known = append(known, Algorithm{Name: name, Settings: slices.Sorted(slices.Values(m.settings)), Available: m.build != nil})
	}
	return known
}

// New returns the sampler of an algorithm for one space. The seed is used
// where the settings have no random_state.
//
//   - random. Setting random_state, a whole number from 0.
//   - grid. Each double needs a step. Without the setting random_state it goes
//     in the order of [NewGrid], with it in that of [NewShuffledGrid].
//   - sobol. Setting random_state; setting scramble, true (the default) for
//     [NewSobol] or false for [NewPlainSobol]. Katib's has no settings.
//
// An error wraps [ErrUnknown] or [ErrUnavailable] where the name is the cause.
func New(name string, settings map[string]string, space *Space, seed uint64) (Sampler, error) {
	m, err := find(name)
	if err != nil {
		return nil, err
	}
	if err := m.check(name, settings); err != nil {
		return nil, err
	}
	if text, ok := settings[randomState]; ok {
		if seed, err = parseSeed(text); err != nil {
			return nil, err
		}
	}
	sampler, err := m.build(settings, space, seed)
	if err != nil {
		return nil, fmt.Errorf("algorithm %s: %w", name, err)
	}
	return sampler, nil
}

// CheckSettings returns what would keep an algorithm from searching a space
// with some settings within a budget, or nil. The rules are Katib's.
func CheckSettings(name string, settings map[string]string, space *Space, b Budget) error {
	if _, err := New(name, settings, space, 0); err != nil {
		return err
	}
	if size, finite := space.Size(); name == "grid" && finite && b.MaxTrials > 0 && uint64(b.MaxTrials) > size {
		return fmt.Errorf("algorithm grid: space has %d points, but the search is to have %d trials: want at most as many trials as points", size, b.MaxTrials)
	}
	return nil
}

// maker is what New knows of an algorithm.
type maker struct {
	settings []string
	build    func(settings map[string]string, space *Space, seed uint64) (Sampler, error) // nil: not available
}

const (
	randomState = "random_state"
	scramble    = "scramble"
)

func makers() map[string]maker {
	return map[string]maker{
		"random": {[]string{randomState}, func(_ map[string]string, _ *Space, seed uint64) (Sampler, error) {
			return NewRandom(seed), nil
		}},
		"grid": {[]string{randomState}, func(settings map[string]string, space *Space, seed uint64) (Sampler, error) {
			if _, shuffled := settings[randomState]; shuffled {
				return NewShuffledGrid(space, seed)
			}
			return NewGrid(space)
		}},
		"sobol": {[]string{randomState, scramble}, func(settings map[string]string, space *Space, seed uint64) (Sampler, error) {
			scrambled, err := parseBool(settings, scramble, true)
			switch {
			case err != nil:
				return nil, err
			case scrambled:
				return NewSobol(space, seed)
			}
			return NewPlainSobol(space)
		}},
		"tpe": {}, "multivariate-tpe": {}, "bayesianoptimization": {}, "cmaes": {},
		"hyperband": {}, "pbt": {}, "enas": {}, "darts": {},
	}
}

func find(name string) (maker, error) {
	makers := makers()
	m, ok := makers[name]
	switch {
	case !ok:
		return m, fmt.Errorf("%w %q: want one of %s", ErrUnknown, name, available(makers))
	case m.build == nil:
		return m, fmt.Errorf("algorithm %s is %w: use one of %s", name, ErrUnavailable, available(makers))
	}
	return m, nil
}

func available(makers map[string]maker) string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(makers)) {
		if makers[name].build != nil {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

func (m maker) check(name string, settings map[string]string) error {
	for _, setting := range slices.Sorted(maps.Keys(settings)) {
		if !slices.Contains(m.settings, setting) {
			return fmt.Errorf("algorithm %s: unknown setting %q: want one of %s", name, setting, strings.Join(m.settings, ", "))
		}
	}
	return nil
}

func parseSeed(text string) (uint64, error) {
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("setting %s is %q: want a whole number from 0", randomState, text)
	}
	return seed, nil
}

func parseBool(settings map[string]string, name string, byDefault bool) (bool, error) {
	text, ok := settings[name]
	if !ok {
		return byDefault, nil
	}
	value, err := strconv.ParseBool(text)
	if err != nil {
		return false, fmt.Errorf("setting %s is %q: want true or false", name, text)
	}
	return value, nil
}
