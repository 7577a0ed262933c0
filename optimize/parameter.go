// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"diwan.dev/diwan/optimize/internal/decimal"
)

// Kind is the kind of a parameter's values.
type Kind string

// The kinds of parameters, named as in Katib.
const (
	// KindDouble is a number from min to max.
	KindDouble Kind = "double"
	// KindInt is an integer from min to max.
	KindInt Kind = "int"
	// KindDiscrete is one of a list of numbers.
	KindDiscrete Kind = "discrete"
	// KindCategorical is one of a list of texts, which have no order.
	KindCategorical Kind = "categorical"
	// KindOrdered is one of a list of texts in an order, such as small,
	// medium, large. Katib has no such kind.
	KindOrdered Kind = "ordered"
)

// listed reports whether the values are from a list.
func (k Kind) listed() bool {
	return k == KindDiscrete || k == KindCategorical || k == KindOrdered
}

// Distribution is the prior distribution of a double or int parameter.
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
	// Step, if not 0, restricts a double or int to Min + k·Step ≤ Max. For an
	// int it must be integral, and 0 means 1.
	Step float64
	// Distribution of a double or int; "" is Uniform. The logarithmic ones
	// need Min > 0.
	Distribution Distribution
	// Mean and Deviation, if Deviation is not 0, are those of a normal
	// distribution before it is truncated at Min and Max; for a log-normal
	// one, Mean is e to the power of the mean of the logarithm, and Deviation
	// the deviation of the logarithm. A Deviation of 0 is Katib's convention.
	Mean, Deviation float64
	// List has the values of a parameter of another kind as they are
	// formatted, each once.
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

// Int returns a parameter that is an integer from min to max.
func Int(name string, min, max int) Parameter {
	return Parameter{Name: name, Kind: KindInt, Min: float64(min), Max: float64(max)}
}

// Discrete returns a parameter that is one of some numbers.
func Discrete(name string, values ...float64) Parameter {
	p := Parameter{Name: name, Kind: KindDiscrete}
	for _, v := range values {
		p.List = append(p.List, decimal.Format(v))
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

// Around returns the parameter with a normal distribution truncated at its
// bounds, or a log-normal one if its distribution is logarithmic: the user's
// prior belief. See Parameter.Mean.
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

// Validate validates the parameter.
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
		return fmt.Errorf("it depends on %q without values for it: want at least one", p.Parent)
	case p.Parent == "" && len(p.Where) > 0:
		return errors.New("it has parent values, but no parent")
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
	return fmt.Errorf("unknown kind %q: want double, int, discrete, categorical or ordered", p.Kind)
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
			return fmt.Errorf("%s is %v: want an integer, because the parameter is an int", b.name, b.value)
		case p.Kind == KindInt && math.Abs(b.value) > maxInt:
			return fmt.Errorf("%s is %v: want at most 2^53 from zero", b.name, b.value)
		}
	}
	switch {
	case len(p.List) > 0:
		return fmt.Errorf("list is set: want only min and max for kind %s", p.Kind)
	case p.Min > p.Max:
		return fmt.Errorf("min %s is greater than max %s", decimal.Format(p.Min), decimal.Format(p.Max))
	case p.Step < 0:
		return fmt.Errorf("step is %s: want a number greater than 0", decimal.Format(p.Step))
	case p.step() > 0 && (p.Max-p.Min)/p.step() > maxInt:
		return fmt.Errorf("step %s divides the range from %s to %s into more than 2^53 values: want a larger step or a smaller range",
			decimal.Format(p.step()), decimal.Format(p.Min), decimal.Format(p.Max))
	case p.Step > 0 && p.Step < p.resolution():
		return fmt.Errorf("step %s is too small to distinguish values near %s: want at least %s",
			decimal.Format(p.Step), decimal.Format(p.largest()), decimal.Format(p.resolution()))
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
// by rounding: a few times the distance between neighboring float64s.
func (p Parameter) resolution() float64 {
	size := math.Abs(p.largest())
	if p.Kind == KindInt {
		return 1
	}
	return 8 * (size - math.Nextafter(size, 0))
}

// maxInt is the greatest integer up to which every one is a float64.
const maxInt = 1 << 53

func (p Parameter) validateDistribution() error {
	switch p.Distribution {
	case "", Uniform, LogUniform, ReverseLogUniform, Normal, LogNormal:
	default:
		return fmt.Errorf("unknown distribution %q: want uniform, logUniform, reverseLogUniform, normal or logNormal", p.Distribution)
	}
	switch {
	case p.Distribution.positive() && p.Min <= 0:
		return fmt.Errorf("min is %s: want a number greater than 0, because the distribution is %s", decimal.Format(p.Min), p.Distribution)
	case !p.Distribution.normal() && (p.Mean != 0 || p.Deviation != 0):
		return errors.New("mean or deviation is set: want them only for a normal or logNormal distribution")
	case !(p.Deviation >= 0) || math.IsInf(p.Deviation, 0):
		return fmt.Errorf("deviation is %v: want a finite number from 0", p.Deviation)
	case p.Deviation > 0 && !(p.Mean >= p.Min && p.Mean <= p.Max):
		return fmt.Errorf("mean is %v: want one between min %s and max %s", p.Mean, decimal.Format(p.Min), decimal.Format(p.Max))
	}
	return nil
}

func (p Parameter) validateList() error {
	switch {
	case p.Min != 0 || p.Max != 0 || p.Step != 0 || p.Distribution != "" && p.Distribution != Uniform || p.Mean != 0 || p.Deviation != 0:
		return fmt.Errorf("min, max, step or distribution is set: want only a list for kind %s", p.Kind)
	case len(p.List) == 0:
		return errors.New("list is empty: want at least one value")
	}
	sorted := slices.Sorted(slices.Values(p.List))
	for i, value := range sorted {
		if i > 0 && value == sorted[i-1] {
			return fmt.Errorf("list has duplicate %q", value)
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

// Declaration is a parameter as declared in a manifest, as strings. Its
// fields are those of Katib's feasible space.
type Declaration struct {
	Name         string
	Kind         Kind
	Min, Max     string // numbers, for double and int
	Step         string // a number, or "" for none; for double and int
	Distribution Distribution
	List         []string // for discrete and categorical
}

// Parameter returns the parameter that the declaration declares. As in Katib,
// a logarithmic distribution from a min that is not greater than 0 begins at
// 1e-10 for a double and at 1 for an int, a step of 0 is none, and a value
// that a list has twice counts once. The fraction of an int's step is dropped,
// and a step below 1 is 1: Katib takes such steps too, but rounds the values.
func (d Declaration) Parameter() (Parameter, error) {
	p := Parameter{Name: d.Name, Kind: d.Kind, Distribution: d.Distribution}
	if d.Kind == KindDouble || d.Kind == KindInt {
		for _, field := range []struct {
			name, text string
			into       *float64
		}{{"min", d.Min, &p.Min}, {"max", d.Max, &p.Max}, {"step", d.Step, &p.Step}} {
			if field.name == "step" && field.text == "" {
				continue
			}
			v, err := parseNumber(field.text)
			if err != nil {
				return Parameter{}, fmt.Errorf("parameter %q: %s is %w", d.Name, field.name, err)
			}
			*field.into = v
		}
		if d.Kind == KindInt && p.Step > 0 {
			p.Step = math.Max(1, math.Floor(p.Step))
		}
		if d.Distribution.positive() && p.Max <= 0 {
			return Parameter{}, fmt.Errorf("parameter %q: max is %s: want a number greater than 0, because the distribution is %s", d.Name, d.Max, d.Distribution)
		}
		if d.Distribution.positive() && p.Min <= 0 {
			p.Min = map[Kind]float64{KindDouble: 1e-10, KindInt: 1}[d.Kind]
		}
	}
	seen := make(map[string]bool, len(d.List))
	for _, value := range d.List {
		if !seen[value] {
			p.List, seen[value] = append(p.List, value), true
		}
	}
	return p, p.Validate()
}

func parseNumber(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%q: want a finite number", text)
	}
	return v, nil
}
