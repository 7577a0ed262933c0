// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"fmt"
	"math"
	"slices"
	"sync"
)

// FidelityConfig is what the samplers over a resource have in common:
// hyperband, asha and bohb. They try many configurations, which are points
// without the resource, with little of it, and the best of them again with
// more. The amounts that they use are those of a ladder of rungs: the most that
// a trial may use, and that divided by Eta, Eta², …, down to the least, each
// moved to the nearest value that the parameter of the resource has.
//
// What they need to know of the past is in the labels of the suggestions, named
// LabelBracket, LabelRung and LabelParent.
type FidelityConfig struct {
	// Resource is the name of the parameter that says how much of it a trial
	// may use, such as epochs: a double, int or discrete one, that neither
	// depends on another nor has others depend on it.
	Resource string
	// Max is the most that a trial may use, up to the greatest value of the
	// parameter, which is the default, 0.
	Max float64
	// Min is the least that a trial may use, greater than 0 and up to Max. The
	// default, 0, is 1, as in Katib, or the least value of the parameter where
	// that is greater; where Max is not greater than 1, it is Max/Eta⁴.
	Min float64
	// Eta is the ratio between rungs, and of the configurations on a rung to
	// those that come to the next: greater than 1. The default is 3, that of
	// the Hyperband paper and of Katib.
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
	// LabelParent is the index of the suggestion that had the same
	// configuration on the rung below. A program may go on from where that one
	// has got to.
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

	mu    sync.Mutex
	board *fidelityBoard // of the history last seen
}

func newFidelity(space *Space, seed uint64, c FidelityConfig) (*fidelity, error) {
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
		return nil, fmt.Errorf("min_points_in_model is %d: want a whole number from 1", c.MinPoints)
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
		return fmt.Errorf("resource_name is %q, a parameter that is %s: want one that is double, int or discrete", f.Resource, a.Kind)
	case a.parent >= 0 || len(space.children[axis]) > 0:
		return fmt.Errorf("resource_name is %q: want a parameter that neither depends on another nor has others depend on it", f.Resource)
	case len(space.axes) == 1:
		return fmt.Errorf("resource_name is %q, the only parameter: want others to search", f.Resource)
	}
	f.axis = axis
	return nil
}

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
		return fmt.Errorf("r_l is %v: want a number greater than 0 among the values of parameter %q, from %s to %s", f.Max, a.Name, formatFloat(least), formatFloat(most))
	}
	if f.Min == 0 {
		f.Min = math.Max(least, math.Min(1, f.Max))
		if f.Max <= 1 {
			f.Min = math.Max(least, f.Max/math.Pow(f.Eta, 4))
		}
	}
	if !(f.Min > 0 && f.Min <= f.Max) {
		return fmt.Errorf("r_min is %v: want a number greater than 0 and up to the most, %s", f.Min, formatFloat(f.Max))
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

// bounds returns the least and greatest number that an axis has.
func (a *axis) bounds() (least, most float64) {
	if a.Kind == KindDiscrete {
		return a.number(a.sorted[0]), a.number(a.sorted[len(a.sorted)-1])
	}
	return a.Min, a.top
}

// nearest returns the coordinate of the value of an axis that is nearest to
// a number.
func (a *axis) nearest(x float64) float64 {
	switch {
	case a.Kind == KindDiscrete:
		best := 0
		for i := range a.List {
			if math.Abs(a.number(i)-x) < math.Abs(a.number(best)-x) {
				best = i
			}
		}
		return float64(best)
	case a.Step > 0:
		k := math.Round((x - a.Min) / a.Step)
		return a.coordinate(uint64(math.Min(math.Max(k, 0), float64(a.count-1))))
	}
	return math.Min(math.Max(x, a.Min), a.top)
}

// amount returns the number at a coordinate of an axis that has numbers.
func (a *axis) amount(coordinate float64) float64 {
	if a.Kind == KindDiscrete {
		return a.number(int(coordinate))
	}
	return coordinate
}
