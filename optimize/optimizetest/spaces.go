// SPDX-License-Identifier: Apache-2.0

package optimizetest

import (
	"fmt"

	"pgregory.net/rapid"

	"diwan.dev/diwan/optimize"
)

// drawSpace draws a space of up to five parameters of all kinds.
func drawSpace(rt *rapid.T, finite bool) *optimize.Space {
	var parameters []optimize.Parameter
	for i := range rapid.IntRange(1, 5).Draw(rt, "parameters") {
		parameters = append(parameters, drawParameter(rt, fmt.Sprintf("p%d", i), finite))
	}
	space, err := optimize.NewSpace(parameters...)
	if err != nil {
		rt.Fatalf("NewSpace(%+v): %v", parameters, err)
	}
	if _, ok := space.Size(); finite && !ok {
		rt.Skip("a grid of more than 2^63 points")
	}
	return space
}

func drawParameter(rt *rapid.T, name string, finite bool) optimize.Parameter {
	switch rapid.SampledFrom([]optimize.Kind{
		optimize.KindDouble, optimize.KindInt, optimize.KindDiscrete, optimize.KindCategorical,
	}).Draw(rt, "kind") {
	case optimize.KindDouble:
		return drawDouble(rt, name, finite)
	case optimize.KindInt:
		return drawInt(rt, name)
	case optimize.KindDiscrete:
		return optimize.Discrete(name, rapid.SliceOfNDistinct(rapid.Float64Range(-5, 5), 1, 4, rapid.ID).Draw(rt, "list")...)
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
		"", optimize.Uniform, optimize.LogUniform, optimize.Normal, optimize.LogNormal,
	}).Draw(rt, "distribution")
}

func positive(d optimize.Distribution) bool {
	return d == optimize.LogUniform || d == optimize.LogNormal
}

// drawSmallSpace draws a finite space of at most a few dozen points.
func drawSmallSpace(rt *rapid.T) *optimize.Space {
	distribution := rapid.SampledFrom([]optimize.Distribution{optimize.Uniform, optimize.LogUniform, optimize.Normal}).Draw(rt, "distribution")
	space, err := optimize.NewSpace(
		optimize.Int("layers", 1, rapid.IntRange(1, 6).Draw(rt, "layers")).Distributed(distribution),
		optimize.Double("rate", 0.1, 0.1+0.1*float64(rapid.IntRange(0, 3).Draw(rt, "rates"))).By(0.1).Distributed(distribution),
		optimize.Categorical("optimizer", "sgd", "adam"),
	)
	if err != nil {
		rt.Fatalf("NewSpace: %v", err)
	}
	return space
}
