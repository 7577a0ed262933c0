// SPDX-License-Identifier: Apache-2.0

package problem

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
)

// Kind says which values a parameter takes.
type Kind string

// The kinds of parameters.
const (
	Double      Kind = "double"
	Int         Kind = "int"
	Categorical Kind = "categorical"
)

// Parameter is one dimension of a problem, in the form that goes to peers.
type Parameter struct {
	Name string `json:"name"`
	Kind Kind   `json:"kind"`
	// Low and High bound a double or int, both inclusive; Log makes the prior
	// uniform in the logarithm.
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	Log  bool    `json:"log,omitempty"`
	// Choices are the values of a categorical parameter.
	Choices []string `json:"choices,omitempty"`
	// The parameter exists only where Parent has one of Values, as text.
	// Parent is "" for one that always exists, and stands before it otherwise.
	Parent string   `json:"parent,omitempty"`
	Values []string `json:"values,omitempty"`
}

// Problem is a function to be made small.
type Problem struct {
	// Name is family/function/dimension/instance, and unique.
	Name string
	// Family is the first part of Name.
	Family     string
	Parameters []Parameter
	// Optimum is the least value, NaN where it is not known.
	Optimum float64
	// Solution is a point with the value Optimum, nil where none is known.
	Solution []float64
	// Evaluate returns the value at a point. It may be called by several
	// goroutines at once, each with a noise generator of its own.
	Evaluate func(ctx context.Context, p Point, noise *rand.Rand) (Value, error) `json:"-"`
}

// Value is what a point is worth.
type Value struct {
	// Observed is what a search sees, Actual the value without noise.
	Observed, Actual float64
}

// Point is a value for each parameter of a problem.
type Point struct {
	parameters []Parameter
	// At has, in the order of the parameters, a number, the index of a choice,
	// or NaN where a parameter does not exist.
	At []float64
}

// Point returns the point with some coordinates.
func (p *Problem) Point(at []float64) Point { return Point{p.Parameters, at} }

// number returns the value of a double or int by name.
func (p Point) number(name string) float64 { return p.At[p.index(name)] }

// choice returns the index of a categorical parameter's value, by name.
func (p Point) choice(name string) int { return int(p.At[p.index(name)]) }

func (p Point) index(name string) int {
	i := slices.IndexFunc(p.parameters, func(q Parameter) bool { return q.Name == name })
	if i < 0 {
		panic(fmt.Sprintf("problem: no parameter %q", name))
	}
	return i
}

// Text returns the values of the parameters that exist, as text by name.
func (p Point) Text() map[string]string {
	texts := make(map[string]string, len(p.At))
	for i, at := range p.At {
		if !math.IsNaN(at) {
			texts[p.parameters[i].Name] = p.parameters[i].text(at)
		}
	}
	return texts
}

func (p Parameter) text(at float64) string {
	switch p.Kind {
	case Categorical:
		return p.Choices[int(at)]
	case Int:
		return strconv.FormatInt(int64(at), 10)
	}
	return strconv.FormatFloat(at, 'g', -1, 64)
}

// Read returns the point that some texts name. A parameter that does not exist
// under the values of the others is left out, named or not; one that does must
// be there and in its range.
func (p *Problem) Read(texts map[string]string) (Point, error) {
	point := p.Point(make([]float64, len(p.Parameters)))
	for i, q := range p.Parameters {
		if !q.exists(point, i) {
			point.At[i] = math.NaN()
			continue
		}
		text, ok := texts[q.Name]
		if !ok {
			return Point{}, fmt.Errorf("cannot read point: parameter %q has no value", q.Name)
		}
		at, err := q.read(text)
		if err != nil {
			return Point{}, fmt.Errorf("cannot read point: parameter %q: %w", q.Name, err)
		}
		point.At[i] = at
	}
	return point, nil
}

// exists reports whether parameter i exists at a point whose coordinates
// before i are set.
func (p Parameter) exists(at Point, i int) bool {
	if p.Parent == "" {
		return true
	}
	parent := at.index(p.Parent)
	if parent >= i {
		panic(fmt.Sprintf("problem: parameter %q stands before its parent", p.Name))
	}
	return !math.IsNaN(at.At[parent]) && slices.Contains(p.Values, at.parameters[parent].text(at.At[parent]))
}

func (p Parameter) read(text string) (float64, error) {
	if p.Kind == Categorical {
		if i := slices.Index(p.Choices, text); i >= 0 {
			return float64(i), nil
		}
		return 0, fmt.Errorf("%q is not one of its choices", text)
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, err
	}
	// A logarithm and back may miss a bound by a rounding.
	if slack := 1e-9 * (math.Abs(p.Low) + math.Abs(p.High)); v < p.Low-slack || v > p.High+slack || math.IsNaN(v) {
		return 0, fmt.Errorf("%v is not between %v and %v", v, p.Low, p.High)
	}
	if p.Kind == Int && v != math.Trunc(v) {
		return 0, fmt.Errorf("%v is not a whole number", v)
	}
	return math.Min(math.Max(v, p.Low), p.High), nil
}

// Random returns a point drawn from the priors.
func (p *Problem) Random(numbers *rand.Rand) Point {
	point := p.Point(make([]float64, len(p.Parameters)))
	for i, q := range p.Parameters {
		u := numbers.Float64()
		switch {
		case !q.exists(point, i):
			point.At[i] = math.NaN()
		case q.Kind == Categorical:
			point.At[i] = math.Floor(u * float64(len(q.Choices)))
		default:
			point.At[i] = q.quantile(u)
		}
	}
	return point
}

func (p Parameter) quantile(u float64) float64 {
	low, high := p.Low, p.High
	if p.Kind == Int {
		low, high = low-0.5, high+0.5
		if p.Log {
			low = math.Max(low, p.Low/2)
		}
	}
	v := low + u*(high-low)
	if p.Log {
		v = math.Exp(math.Log(low) + u*(math.Log(high)-math.Log(low)))
	}
	if p.Kind == Int {
		v = math.Round(v)
	}
	return math.Min(math.Max(v, p.Low), p.High)
}

// exact makes the evaluation of a function without noise.
func exact(f func(p Point) float64) func(context.Context, Point, *rand.Rand) (Value, error) {
	return func(ctx context.Context, p Point, _ *rand.Rand) (Value, error) {
		v := f(p)
		return Value{v, v}, ctx.Err()
	}
}

// box returns d doubles from low to high.
func box(d int, low, high float64) []Parameter {
	parameters := make([]Parameter, d)
	for i := range parameters {
		parameters[i] = Parameter{Name: fmt.Sprintf("x%d", i), Kind: Double, Low: low, High: high}
	}
	return parameters
}

// generator returns the random numbers that decide an instance of a function.
func generator(name string, instance int) *rand.Rand {
	hash := uint64(14695981039346656037) // FNV-1a
	for _, c := range []byte(name) {
		hash = (hash ^ uint64(c)) * 1099511628211
	}
	return rand.New(rand.NewPCG(hash, uint64(instance)))
}
