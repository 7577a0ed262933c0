// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"

	"diwan.dev/diwan/optimize/internal/decimal"
	"diwan.dev/diwan/optimize/internal/halving"
	"diwan.dev/diwan/optimize/internal/random"
	"diwan.dev/diwan/optimize/internal/settings"
)

// FidelityConfig is the common configuration of the multi-fidelity samplers
// hyperband, asha and bohb. They try many configurations, which are points
// without the resource, with a small amount of it, and the best of them again
// with more. The amounts form a ladder of rungs: the maximum, and that divided
// by Eta, Eta², …, down to the minimum, each rounded to the nearest value of
// the resource parameter.
//
// What they need to know of the past is in the labels of the suggestions, named
// LabelBracket, LabelRung and LabelParent.
type FidelityConfig struct {
	// Resource is the name of the parameter with a trial's amount of the
	// resource, such as epochs: a double, int or discrete one, without
	// dependencies in either direction.
	Resource string
	// Max is the most that a trial may use, up to the greatest value of the
	// parameter, which is the default, 0.
	Max float64
	// Min is the least that a trial may use, greater than 0 and up to Max. The
	// default, 0, is 1, as in Katib, or the least value of the parameter where
	// that is greater; where Max is not greater than 1, it is Max/Eta⁴.
	Min float64
	// Eta is the ratio between rungs, and of the configurations on a rung to
	// those promoted to the next: greater than 1. The default is 3, as in the
	// Hyperband paper and Katib.
	Eta float64
	// Configurations makes the sampler from which new configurations come, for
	// the space without the resource; nil is random. Each configuration is one
	// trial of its history, in the order in which they began, with the values
	// that it has on the highest rung that at least MinPoints configurations
	// have values on, or on the third highest where none of the highest three
	// has so many; one that began above that rung has its first values. One
	// that has none there is Pending, or Failed or Infeasible where a trial of
	// it was: values with less of the resource are not compared with these.
	// Configurations are random until twice MinPoints have values in that
	// history, and so again whenever it comes to the next rung, which keeps a
	// model that was misled by curves that cross from ruling the search.
	Configurations func(space *Space, seed uint64) (Sampler, error)
	// MinPoints is how many configurations must have values on a rung for that
	// to be the one to learn from, at least 1. The default, 0, is one more than
	// the space has parameters without the resource, as in BOHB (Falkner et al.,
	// "BOHB: robust and efficient hyperparameter optimization at scale", 2018).
	MinPoints int
}

// DefaultFidelityConfig returns the defaults, which lack the resource.
func DefaultFidelityConfig() FidelityConfig { return FidelityConfig{Eta: 3} }

// The labels of suggestions of the samplers over a resource.
const (
	// LabelBracket is the number of the bracket, from 0.
	LabelBracket = "diwan.dev/bracket"
	// LabelRung is the number of the rung on the ladder, from 0.
	LabelRung = "diwan.dev/rung"
	// LabelParent is the index of the suggestion with the same configuration
	// on the rung below. A program may continue where that one stopped.
	LabelParent = "diwan.dev/parent"
)

// fidelity suggests configurations on rungs.
type fidelity struct {
	FidelityConfig
	seed           uint64
	axis           int       // of the resource
	ladder         []float64 // coordinates of the resource, by rung
	configurations *Space
	inner          Sampler // nil: random

	mu   sync.Mutex
	past *fidelityHistory // the history last seen
}

func newFidelity(space *Space, seed uint64, c FidelityConfig) (*fidelity, error) {
	if err := space.check(); err != nil {
		return nil, err
	}
	f := &fidelity{FidelityConfig: c, seed: seed}
	if err := f.findResource(space); err != nil {
		return nil, err
	}
	if err := f.buildLadder(&space.axes[f.axis]); err != nil {
		return nil, err
	}
	if err := f.dropResource(space); err != nil {
		return nil, err
	}
	if c.MinPoints < 0 {
		return nil, fmt.Errorf("min_points_in_model is %d: want an integer from 1", c.MinPoints)
	}
	if c.MinPoints == 0 {
		f.MinPoints = f.configurations.Len() + 1
	}
	if c.Configurations == nil {
		return f, nil
	}
	var err error
	f.inner, err = c.Configurations(f.configurations, seed)
	return f, err
}

func (f *fidelity) findResource(space *Space) error {
	axis, ok := space.byName[f.Resource]
	if !ok {
		return fmt.Errorf("resource_name is %q: want the name of a parameter", f.Resource)
	}
	a := &space.axes[axis]
	switch {
	case a.Kind != KindDouble && a.Kind != KindInt && a.Kind != KindDiscrete:
		return fmt.Errorf("resource_name is %q, a parameter of type %s: want double, int or discrete", f.Resource, a.Kind)
	case a.parent >= 0 || len(space.children[axis]) > 0:
		return fmt.Errorf("resource_name is %q: want a parameter without dependencies in either direction", f.Resource)
	case len(space.axes) == 1:
		return fmt.Errorf("resource_name is %q, the only parameter: want others to search", f.Resource)
	}
	f.axis = axis
	return nil
}

// mostRungs limits a ladder: beyond it rungs are too close to distinguish
// good configurations from bad ones.
const mostRungs = 1000

// dropResource makes the space of the configurations. A configuration is
// feasible if it is with the most of the resource.
func (f *fidelity) dropResource(space *Space) error {
	var others []Parameter
	for i := range space.axes {
		if i != f.axis {
			others = append(others, space.axes[i].Parameter)
		}
	}
	configurations, err := NewSpace(others...)
	if err != nil {
		return err
	}
	f.configurations = configurations
	if len(space.constraints) == 0 {
		return nil
	}
	constrained, err := configurations.Constrained(Constraint{
		Name:  "those of the space",
		Holds: func(c Point) bool { return space.Feasible(f.lift(space, c, len(f.ladder)-1)) },
	})
	if err == nil { // otherwise each is tried when it comes
		f.configurations = constrained
	}
	return nil
}

// lift returns a configuration on a rung, as a point of the space.
func (f *fidelity) lift(space *Space, configuration Point, rung int) Point {
	return Point{space: space, at: slices.Insert(slices.Clone(configuration.at), f.axis, f.ladder[rung])}
}

// drop returns the configuration of a point.
func (f *fidelity) drop(p Point) Point {
	return Point{space: f.configurations, at: slices.Delete(slices.Clone(p.at), f.axis, f.axis+1)}
}

// buildLadder computes the rungs.
func (f *fidelity) buildLadder(a *axis) error {
	least, most := a.bounds()
	if f.Max == 0 {
		f.Max = most
	}
	if !(f.Eta > 1) || math.IsInf(f.Eta, 1) {
		return fmt.Errorf("eta is %v: want a number greater than 1", f.Eta)
	}
	if !(f.Max > 0 && f.Max <= most && f.Max >= least) {
		return fmt.Errorf("r_l is %v: want a number greater than 0 among the values of parameter %q, from %s to %s", f.Max, a.Name, decimal.Format(least), decimal.Format(most))
	}
	if f.Min == 0 {
		f.Min = math.Max(least, math.Min(1, f.Max))
		if f.Max <= 1 {
			f.Min = math.Max(least, f.Max/math.Pow(f.Eta, 4))
		}
	}
	if !(f.Min > 0 && f.Min <= f.Max) {
		return fmt.Errorf("r_min is %v: want a number greater than 0 and at most r_l, %s", f.Min, decimal.Format(f.Max))
	}
	if rungs := math.Log(f.Max/f.Min) / math.Log(f.Eta); !(rungs < mostRungs) {
		return fmt.Errorf("eta is %v: it gives more than %d rungs from %s to %s: want a larger one", f.Eta, mostRungs, decimal.Format(f.Min), decimal.Format(f.Max))
	}
	// The epsilon makes up for the rounding of powers.
	for amount := f.Max; amount >= f.Min*(1-1e-9); amount /= f.Eta {
		at := a.nearest(amount)
		if len(f.ladder) == 0 || at != f.ladder[len(f.ladder)-1] {
			f.ladder = append(f.ladder, at)
		}
	}
	slices.Reverse(f.ladder)
	return nil
}

// suggest returns the suggestion that a decision asks for.
func (f *fidelity) suggest(ctx context.Context, past *fidelityHistory, d halving.Decision) (Point, error) {
	if d.Promoted < 0 {
		return f.begin(ctx, past, d.Bracket, d.Rung)
	}
	return f.raised(past, d.Promoted).WithLabels(map[string]string{
		LabelBracket: strconv.Itoa(d.Bracket),
		LabelRung:    strconv.Itoa(d.Rung),
		LabelParent:  strconv.Itoa(d.Promoted),
	}), nil
}

// promotable returns a function that reports whether a finished suggestion has
// values, and its configuration may be tried on the next rung and was not, as it may
// have been by a user.
func (f *fidelity) promotable(past *fidelityHistory) func(i int) bool {
	return func(i int) bool {
		if !past.trials[i].Complete() {
			return false
		}
		next := f.raised(past, i)
		return !past.Contains(next) && past.space.Feasible(next)
	}
}

// raised returns a suggestion's configuration on the next rung.
func (f *fidelity) raised(past *fidelityHistory, i int) Point {
	at := slices.Clone(past.trials[i].Point.at)
	at[f.axis] = f.ladder[past.board.Run(i).Rung+1]
	return Point{space: past.space, at: at}
}

// begin returns a new configuration on a rung of a bracket: that of the inner
// sampler, or, if it has no new one, a random one.
func (f *fidelity) begin(ctx context.Context, past *fidelityHistory, bracket, rung int) (Point, error) {
	numbers := random.New(f.seed, uint64(past.Len()))
	first, err := f.proposal(ctx, past, numbers)
	if err != nil {
		return Point{}, err
	}
	p, err := novel(past.History, draws, func() Point {
		c, _ := f.configurations.draw(numbers, 1, func(Point) bool { return true })
		if first != nil {
			c, first = *first, nil
		}
		return f.lift(past.space, c, rung)
	})
	if err != nil || p.at[f.axis] != f.ladder[rung] {
		return p, err // where nothing else is left, a point that is on no rung
	}
	return p.WithLabels(map[string]string{LabelBracket: strconv.Itoa(bracket), LabelRung: strconv.Itoa(rung)}), nil
}

// proposal returns a configuration to begin with, or nil where none is new.
func (f *fidelity) proposal(ctx context.Context, past *fidelityHistory, numbers *random.Stream) (*Point, error) {
	if f.inner != nil {
		if v, values := f.view(past); values >= 2*f.MinPoints {
			c, err := f.inner.Sample(ctx, v)
			switch {
			case errors.Is(err, ErrExhausted):
				return nil, nil
			case err != nil:
				return nil, err
			}
			return &c, nil
		}
	}
	if c, ok := f.configurations.draw(numbers, draws, past.unseen); ok {
		return &c, nil
	}
	return nil, nil
}

// unseen reports whether a configuration is feasible and new.
func (past *fidelityHistory) unseen(c Point) bool {
	return !past.configurations.Contains(c) && past.configurations.space.Feasible(c)
}

// fidelitySettings are the settings of all samplers over a resource.
func fidelitySettings() []string { return []string{"resource_name", "r_l", "r_min", "eta"} }

// readFidelity reads the common settings of the multi-fidelity samplers, two of
// which Katib requires.
func readFidelity(s *settings.Reader, c *FidelityConfig) {
	s.Require("resource_name", "the name of the resource parameter")
	s.Require("r_l", "the maximum resource of a trial")
	c.Resource = s.Text("resource_name", "")
	c.Max = s.Float("r_l", 0, settings.Positive)
	c.Min = s.Float("r_min", 0, settings.Positive)
	c.Eta = s.Float("eta", c.Eta, settings.Range{Holds: func(v float64) bool { return v > 1 }, Text: "greater than 1"})
}
