// SPDX-License-Identifier: Apache-2.0

package optimize_test

import (
	"context"
	"fmt"
	"math"

	"diwan.dev/diwan/optimize"
)

// minimise runs a study of an objective and returns it.
func minimise(space *optimize.Space, sampler optimize.Sampler, err error, trials int, objective func(optimize.Point) float64) *optimize.Study {
	if err != nil {
		panic(err)
	}
	study := optimize.NewStudy(space, optimize.Options{Sampler: sampler})
	for range trials {
		trial, err := study.Ask(context.Background())
		if err != nil {
			panic(err)
		}
		if err := study.Tell(trial.Index, objective(trial.Point)); err != nil {
			panic(err)
		}
	}
	return study
}

// Finds the minimum of a valley in two dimensions.
func ExampleNewCMAES() {
	space, err := optimize.NewSpace(optimize.Double("x", -2, 2), optimize.Double("y", -1, 3))
	if err != nil {
		panic(err)
	}
	sampler, err := optimize.NewCMAES(space, 3, optimize.DefaultCMAESConfig())
	study := minimise(space, sampler, err, 300, func(p optimize.Point) float64 {
		x, y := p.Float("x"), p.Float("y")
		return 100*(y-x*x)*(y-x*x) + (1-x)*(1-x)
	})
	best, _ := study.Best()
	fmt.Printf("x=%.2f y=%.2f\n", best.Point.Float("x"), best.Point.Float("y"))
	// Output: x=1.00 y=1.00
}

// Spreads points evenly over three parameters.
func ExampleNewHalton() {
	space, err := optimize.NewSpace(optimize.Double("x", 0, 1), optimize.Int("n", 1, 9), optimize.Categorical("c", "a", "b"))
	if err != nil {
		panic(err)
	}
	sampler, err := optimize.NewHalton(space, 1)
	study := minimise(space, sampler, err, 90, func(optimize.Point) float64 { return 0 })
	fifths := make([]int, 5)
	for _, t := range study.Trials() {
		fifths[int(5*t.Point.Float("x"))]++
	}
	fmt.Println(fifths)
	// Output: [18 18 19 18 17]
}

// Searches an architecture: how many layers there are decides which have an
// operation.
func ExampleNewEvolution() {
	operations := []string{"conv3", "conv5", "pool", "skip"}
	space, err := optimize.NewSpace(
		optimize.Int("layers", 1, 3),
		optimize.Categorical("op1", operations...),
		optimize.Categorical("op2", operations...).When("layers", "2", "3"),
		optimize.Categorical("op3", operations...).When("layers", "3"),
	)
	if err != nil {
		panic(err)
	}
	loss := map[string]float64{"conv3": 1, "conv5": 2, "pool": 3, "skip": 4, "": 3}
	sampler, err := optimize.NewEvolution(space, 1, optimize.EvolutionConfig{Population: 10, Sample: 4, Index: 3})
	study := minimise(space, sampler, err, 60, func(p optimize.Point) float64 {
		return loss[p.Text("op1")] + loss[p.Text("op2")] + loss[p.Text("op3")]
	})
	best, _ := study.Best()
	fmt.Println(best.Point)
	// Output: layers=3 op1=conv3 op2=conv3 op3=conv3
}

// Finds points between the minima of two objectives.
func ExampleNewNSGA2() {
	space, err := optimize.NewSpace(optimize.Double("x", -10, 10))
	if err != nil {
		panic(err)
	}
	sampler, err := optimize.NewNSGA2(space, 1, optimize.DefaultNSGA2Config())
	if err != nil {
		panic(err)
	}
	history := optimize.NewHistory(space, optimize.Minimize, optimize.Minimize)
	for range 300 {
		p, err := sampler.Sample(context.Background(), history)
		if err != nil {
			panic(err)
		}
		x := p.Float("x")
		if err := history.Tell(history.Add(p), optimize.Values(x*x, (x-2)*(x-2))); err != nil {
			panic(err)
		}
	}
	least, most := 10.0, -10.0
	for _, t := range history.Pareto() {
		x := t.Point.Float("x")
		least, most = min(least, x), max(most, x)
	}
	fmt.Printf("from x=%.1f to x=%.1f\n", math.Abs(least), most)
	// Output: from x=0.0 to x=2.0
}

// Finds a schedule: trials go on from the checkpoint of an earlier one, here
// the number of its parent's steps.
func ExampleNewPBT() {
	space, err := optimize.NewSpace(optimize.Double("lr", 1e-4, 1).Log())
	if err != nil {
		panic(err)
	}
	sampler, err := optimize.NewPBT(space, 1, optimize.PBTConfig{Population: 5, Truncation: 0.2, Resample: -1})
	if err != nil {
		panic(err)
	}
	history := optimize.NewHistory(space)
	steps := map[string]int{} // the checkpoints, by trial
	for i := range 25 {
		p, err := sampler.Sample(context.Background(), history)
		if err != nil {
			panic(err)
		}
		parent := p.Labels()[optimize.PBTParentLabel] // "" for none
		steps[fmt.Sprint(i)] = steps[parent] + 100
		loss := math.Abs(math.Log10(p.Float("lr"))+2) / float64(steps[fmt.Sprint(i)])
		if err := history.Tell(history.Add(p), optimize.Values(loss)); err != nil {
			panic(err)
		}
	}
	fmt.Println(steps["24"])
	// Output: 600
}
