// SPDX-License-Identifier: Apache-2.0

package optimizetest

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"diwan.dev/diwan/optimize"
)

// drawSpace draws a space of up to five parameters of all kinds, and those that
// the sampler needs. Now and then some depend on others, or there is a
// constraint.
func drawSpace(rt *rapid.T, s Subject) *optimize.Space {
	if s.Spaces != nil {
		return rapid.SampledFrom(s.Spaces).Draw(rt, "space")
	}
	var parameters []optimize.Parameter
	for i := range rapid.IntRange(1, 5).Draw(rt, "parameters") {
		p := drawParameter(rt, fmt.Sprintf("p%d", i), s.Finite)
		if i > 0 && rapid.IntRange(0, 2).Draw(rt, "conditional") == 0 {
			p = drawCondition(rt, p, rapid.SampledFrom(parameters).Draw(rt, "parent"))
		}
		parameters = append(parameters, p)
	}
	space := newSpace(rt, append(parameters, s.Parameters...)...)
	if rapid.IntRange(0, 4).Draw(rt, "constrained") == 0 {
		space = constrain(rt, space)
	}
	if _, ok := space.Size(); s.Finite && !ok {
		rt.Skip("a grid of too many points")
	}
	return space
}

func newSpace(rt *rapid.T, parameters ...optimize.Parameter) *optimize.Space {
	space, err := optimize.NewSpace(parameters...)
	if err != nil {
		rt.Fatalf("NewSpace(%+v): %v", parameters, err)
	}
	return space
}

// constrain excludes a quarter of the points, here and there.
func constrain(rt *rapid.T, space *optimize.Space) *optimize.Space {
	constrained, err := space.Constrained(optimize.Constraint{Name: "three of four", Holds: func(p optimize.Point) bool {
		hash := fnv.New32a()
		hash.Write([]byte(p.String()))
		return hash.Sum32()%4 != 0
	}})
	switch {
	case errors.Is(err, optimize.ErrInfeasible): // the space has few points
		return space
	case err != nil:
		rt.Fatalf("Constrained: %v", err)
	}
	return constrained
}

// drawCondition makes a parameter depend on another, if that has values that
// are easily named.
func drawCondition(rt *rapid.T, p, parent optimize.Parameter) optimize.Parameter {
	values := parent.List
	if parent.Kind == optimize.KindInt {
		values = []string{strconv.FormatInt(int64(parent.Min), 10)}
	}
	if len(values) == 0 {
		return p
	}
	return p.When(parent.Name, rapid.SliceOfNDistinct(rapid.SampledFrom(values), 1, len(values), rapid.ID).Draw(rt, "where")...)
}

func drawParameter(rt *rapid.T, name string, finite bool) optimize.Parameter {
	switch rapid.SampledFrom([]optimize.Kind{
		optimize.KindDouble, optimize.KindInt, optimize.KindDiscrete, optimize.KindCategorical, optimize.KindOrdered,
	}).Draw(rt, "kind") {
	case optimize.KindDouble:
		return drawDouble(rt, name, finite)
	case optimize.KindInt:
		return drawInt(rt, name)
	case optimize.KindDiscrete:
		return optimize.Discrete(name, rapid.SliceOfNDistinct(rapid.Float64Range(-5, 5), 1, 4, rapid.ID).Draw(rt, "list")...)
	case optimize.KindOrdered:
		return optimize.Ordered(name, "small", "medium", "large")
	}
	return optimize.Categorical(name, rapid.SliceOfNDistinct(rapid.StringN(0, 3, -1), 1, 4, rapid.ID).Draw(rt, "list")...)
}

func drawDouble(rt *rapid.T, name string, finite bool) optimize.Parameter {
	distribution := drawDistribution(rt)
	// Bounds and steps as users write them: decimals of a few digits, and now
	// and then the extremes.
	scale := rapid.SampledFrom([]float64{1, 1e-3, 1e5}).Draw(rt, "scale")
	low, high := -200, 200
	if positive(distribution) {
		low = 1
	}
	min := rapid.IntRange(low, high).Draw(rt, "min")
	p := optimize.Double(name, float64(min)*scale, float64(min+rapid.IntRange(0, 300).Draw(rt, "range"))*scale).Distributed(distribution)
	switch {
	case finite || rapid.Bool().Draw(rt, "stepped"):
		p = p.By(float64(rapid.IntRange(1, 70).Draw(rt, "step")) * scale)
	case rapid.IntRange(0, 5).Draw(rt, "extreme") == 0:
		p.Max = 1e308
		if !positive(distribution) {
			p.Min = -1e308
		}
	}
	return p
}

func drawInt(rt *rapid.T, name string) optimize.Parameter {
	distribution := drawDistribution(rt)
	low := -100
	if positive(distribution) {
		low = 1
	}
	min := rapid.IntRange(low, 100).Draw(rt, "min")
	max := min + rapid.OneOf(rapid.IntRange(0, 300), rapid.IntRange(0, 1<<52)).Draw(rt, "range")
	return optimize.Int(name, min, max).Distributed(distribution).By(float64(rapid.SampledFrom([]int{0, 1, 2, 7}).Draw(rt, "step")))
}

func drawDistribution(rt *rapid.T) optimize.Distribution {
	return rapid.SampledFrom([]optimize.Distribution{
		"", optimize.Uniform, optimize.LogUniform, optimize.ReverseLogUniform, optimize.Normal, optimize.LogNormal,
	}).Draw(rt, "distribution")
}

func positive(d optimize.Distribution) bool {
	return d == optimize.LogUniform || d == optimize.ReverseLogUniform || d == optimize.LogNormal
}

// drawSmallSpace draws a finite space of at most a few dozen points, times those
// of the parameters that the sampler needs.
func drawSmallSpace(rt *rapid.T, s Subject) *optimize.Space {
	if s.Spaces != nil {
		return s.Spaces[0]
	}
	distribution := rapid.SampledFrom([]optimize.Distribution{optimize.Uniform, optimize.LogUniform, optimize.Normal}).Draw(rt, "distribution")
	rate := optimize.Double("rate", 0.1, 0.1+0.1*float64(rapid.IntRange(0, 3).Draw(rt, "rates"))).By(0.1).Distributed(distribution)
	if rapid.Bool().Draw(rt, "conditional") {
		rate = rate.When("optimizer", "sgd")
	}
	space := newSpace(rt, append([]optimize.Parameter{
		optimize.Int("layers", 1, rapid.IntRange(1, 6).Draw(rt, "layers")).Distributed(distribution),
		rate,
		optimize.Categorical("optimizer", "sgd", "adam"),
	}, s.Parameters...)...)
	if rapid.Bool().Draw(rt, "constrained") {
		return constrain(rt, space)
	}
	return space
}

// largeSpace returns a space with more points than a test asks for.
func (s Subject) largeSpace(t *testing.T) *optimize.Space {
	if s.Spaces != nil {
		return s.Spaces[len(s.Spaces)-1]
	}
	space, err := optimize.NewSpace(append(s.Parameters, optimize.Double("x", 0, 1).By(1e-6))...)
	if err != nil {
		t.Fatal(err)
	}
	return space
}
