// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Kind says which values a parameter takes.
type Kind string

// The kinds of parameters, named as in Katib.
const (
	// KindDouble is a number from min to max.
	KindDouble Kind = "double"
	// KindInt is a whole number from min to max.
	KindInt Kind = "int"
	// KindDiscrete is one of a list of numbers.
	KindDiscrete Kind = "discrete"
	// KindCategorical is one of a list of texts, which have no order.
	KindCategorical Kind = "categorical"
	// KindOrdered is one of a list of texts in an order, such as small,
	// medium, large. Katib has no such kind.
	KindOrdered Kind = "ordered"
)

// listed reports whether the values are those of a list.
func (k Kind) listed() bool {
	return k == KindDiscrete || k == KindCategorical || k == KindOrdered
}

// Distribution says how likely the values of a double or int parameter are
// before anything is known.
type Distribution string

// The distributions, named as in Katib, which has no ReverseLogUniform. The
// package document defines them.
const (
	Uniform           Distribution = "uniform"
	LogUniform        Distribution = "logUniform"
	ReverseLogUniform Distribution = "reverseLogUniform"
	Normal            Distribution = "normal"
	LogNormal         Distribution = "logNormal"
)

// log reports whether the distribution is one of the logarithm.
func (d Distribution) log() bool { return d == LogUniform || d == LogNormal }

// positive reports whether the distribution needs values greater than 0.
func (d Distribution) positive() bool { return d.log() || d == ReverseLogUniform }

func (d Distribution) normal() bool { return d == Normal || d == LogNormal }

// Parameter is one dimension of a space. [Double], [Int], [Discrete],
// [Categorical] and [Ordered] make one.
type Parameter struct {
	// Name is not empty, and unique in its space.
	Name string
	Kind Kind
	// Min and Max bound a double or int, both inclusive. Those of an int are
	// whole, and at most 2⁵³ from zero, where a float64 is exact.
	Min, Max float64
	// Step, if not 0, keeps a double or int to Min + k·Step ≤ Max. That of an
	// int is whole; 0 is 1 there.
	Step float64
	// Distribution of a double or int; "" is Uniform. The logarithmic ones
	// need Min > 0.
	Distribution Distribution
	// Mean and Deviation, if Deviation is not 0, are those of a normal
	// distribution before it is cut off at Min and Max; of a log-normal one,
	// Mean is e to the power of the mean of the logarithm, and Deviation the
	// deviation of the logarithm. A Deviation of 0 is Katib's convention.
	Mean, Deviation float64
	// List holds the values of a parameter of another kind as they are to be
	// written, each once.
	List []string
	// Parent, if not "", names the parameter on which this one depends: it
	// exists only in points whose Parent has one of the values Where. The
	// parent has an end to its values, and may have a parent itself.
	Parent string
	Where  []string
}

// Double returns a parameter that is a number from min to max.
func Double(name string, min, max float64) Parameter {
	return Parameter{Name: name, Kind: KindDouble, Min: min, Max: max}
}

// Int returns a parameter that is a whole number from min to max.
func Int(name string, min, max int) Parameter {
	return Parameter{Name: name, Kind: KindInt, Min: float64(min), Max: float64(max)}
}

// Discrete returns a parameter that is one of some numbers.
func Discrete(name string, values ...float64) Parameter {
	p := Parameter{Name: name, Kind: KindDiscrete}
	for _, v := range values {
		p.List = append(p.List, formatFloat(v))
	}
	return p
}

// Categorical returns a parameter that is one of some texts.
func Categorical(name string, values ...string) Parameter {
	return Parameter{Name: name, Kind: KindCategorical, List: values}
}

// Ordered returns a parameter that is one of some texts in an order.
func Ordered(name string, values ...string) Parameter {
	return Parameter{Name: name, Kind: KindOrdered, List: values}
}

// Log returns the parameter with a log-uniform distribution.
func (p Parameter) Log() Parameter { return p.Distributed(LogUniform) }

// Distributed returns the parameter with a distribution.
func (p Parameter) Distributed(d Distribution) Parameter {
	p.Distribution = d
	return p
}

// Around returns the parameter with a normal distribution that is cut off at
// its bounds, or a log-normal one where its distribution is logarithmic: what
// the user believes before the search. See Parameter.Mean.
func (p Parameter) Around(mean, deviation float64) Parameter {
	p.Mean, p.Deviation = mean, deviation
	if p.Distribution.log() {
		return p.Distributed(LogNormal)
	}
	return p.Distributed(Normal)
}

// When returns the parameter so that it exists only in points whose parent has
// one of some values, written as they are in assignments.
func (p Parameter) When(parent string, values ...string) Parameter {
	p.Parent, p.Where = parent, values
	return p
}

// By returns the parameter with a step.
func (p Parameter) By(step float64) Parameter {
	p.Step = step
	return p
}

// Validate returns what is wrong with the parameter, or nil.
func (p Parameter) Validate() error {
	if err := p.validate(); err != nil {
		return fmt.Errorf("parameter %q: %w", p.Name, err)
	}
	return nil
}

func (p Parameter) validate() error {
	switch {
	case p.Name == "":
		return errors.New("name is empty")
	case p.Parent != "" && len(p.Where) == 0:
		return fmt.Errorf("it depends on %q without values of that: want at least one", p.Parent)
	case p.Parent == "" && len(p.Where) > 0:
		return errors.New("it has values of a parent, but no parent")
	}
	switch p.Kind {
	case KindDouble, KindInt:
		if err := p.validateRange(); err != nil {
			return err
		}
		return p.validateDistribution()
	case KindDiscrete, KindCategorical, KindOrdered:
		return p.validateList()
	}
	return fmt.Errorf("kind %q is not known: want double, int, discrete, categorical or ordered", p.Kind)
}

func (p Parameter) validateRange() error {
	for _, b := range []struct {
		name  string
		value float64
	}{{"min", p.Min}, {"max", p.Max}, {"step", p.Step}} {
		switch {
		case math.IsNaN(b.value) || math.IsInf(b.value, 0):
			return fmt.Errorf("%s is %v: want a finite number", b.name, b.value)
		case p.Kind == KindInt && b.value != math.Trunc(b.value):
			return fmt.Errorf("%s is %v: want a whole number, because the parameter is an int", b.name, b.value)
		case p.Kind == KindInt && math.Abs(b.value) > maxInt:
			return fmt.Errorf("%s is %v: want at most 2^53 from zero", b.name, b.value)
		}
	}
	switch {
	case len(p.List) > 0:
		return fmt.Errorf("list is set: want min and max alone for kind %s", p.Kind)
	case p.Min > p.Max:
		return fmt.Errorf("min %s is greater than max %s", formatFloat(p.Min), formatFloat(p.Max))
	case p.Step < 0:
		return fmt.Errorf("step is %s: want a number greater than 0", formatFloat(p.Step))
	case p.step() > 0 && (p.Max-p.Min)/p.step() > maxInt:
		return fmt.Errorf("step %s divides the range from %s to %s into more than 2^53 values: want a larger step or a smaller range",
			formatFloat(p.step()), formatFloat(p.Min), formatFloat(p.Max))
	case p.Step > 0 && p.Step < p.resolution():
		return fmt.Errorf("step %s is too small to tell values near %s apart: want at least %s",
			formatFloat(p.Step), formatFloat(p.largest()), formatFloat(p.resolution()))
	}
	return nil
}

// step returns the distance between values, 0 where they are continuous.
func (p Parameter) step() float64 {
	if p.Kind == KindInt && p.Step == 0 {
		return 1
	}
	return p.Step
}

// largest returns the bound that is farther from zero.
func (p Parameter) largest() float64 {
	if math.Abs(p.Min) > math.Abs(p.Max) {
		return p.Min
	}
	return p.Max
}

// resolution returns the least step at which values differ, whatever is lost
// by rounding: a few times the distance between neighbouring float64s.
func (p Parameter) resolution() float64 {
	size := math.Abs(p.largest())
	if p.Kind == KindInt {
		return 1
	}
	return 8 * (size - math.Nextafter(size, 0))
}

// maxInt is the greatest whole number up to which every one is a float64.
const maxInt = 1 << 53

func (p Parameter) validateDistribution() error {
	switch p.Distribution {
	case "", Uniform, LogUniform, ReverseLogUniform, Normal, LogNormal:
	default:
		return fmt.Errorf("distribution %q is not known: want uniform, logUniform, reverseLogUniform, normal or logNormal", p.Distribution)
	}
	switch {
	case p.Distribution.positive() && p.Min <= 0:
		return fmt.Errorf("min is %s: want a number greater than 0, because the distribution is %s", formatFloat(p.Min), p.Distribution)
	case !p.Distribution.normal() && (p.Mean != 0 || p.Deviation != 0):
		return errors.New("mean or deviation is set: want them for a normal or logNormal distribution alone")
	case !(p.Deviation >= 0) || math.IsInf(p.Deviation, 0):
		return fmt.Errorf("deviation is %v: want a finite number from 0", p.Deviation)
	case p.Deviation > 0 && !(p.Mean >= p.Min && p.Mean <= p.Max):
		return fmt.Errorf("mean is %v: want one between min %s and max %s", p.Mean, formatFloat(p.Min), formatFloat(p.Max))
	}
	return nil
}

func (p Parameter) validateList() error {
	switch {
	case p.Min != 0 || p.Max != 0 || p.Step != 0 || p.Distribution != "" && p.Distribution != Uniform || p.Mean != 0 || p.Deviation != 0:
		return fmt.Errorf("min, max, step or distribution is set: want a list alone for kind %s", p.Kind)
	case len(p.List) == 0:
		return errors.New("list is empty: want at least one value")
	}
	sorted := slices.Sorted(slices.Values(p.List))
	for i, value := range sorted {
		if i > 0 && value == sorted[i-1] {
			return fmt.Errorf("list has %q twice", value)
		}
		if p.Kind != KindDiscrete {
			continue
		}
		if f, err := strconv.ParseFloat(value, 64); err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Errorf("list has %q: want finite numbers, because the parameter is discrete", value)
		}
	}
	return nil
}
