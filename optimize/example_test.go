// SPDX-License-Identifier: Apache-2.0

package optimize_test

import (
	"context"
	"fmt"
	"math"

	"diwan.dev/diwan/optimize"
)

// Tunes a function of a learning rate and a number of layers.
func Example() {
	space, err := optimize.NewSpace(optimize.Double("lr", 1e-5, 1).Log(), optimize.Int("layers", 1, 8))
	if err != nil {
		panic(err)
	}
	study := optimize.NewStudy(space, optimize.Options{Sampler: optimize.NewRandom(1)})
	for range 500 {
		trial, err := study.Ask(context.Background())
		if err != nil {
			panic(err)
		}
		loss := math.Abs(math.Log10(trial.Point.Float("lr"))+2) + math.Abs(float64(trial.Point.Int("layers")-3))
		if err := study.Tell(trial.Index, loss); err != nil {
			panic(err)
		}
	}
	best, _ := study.Best()
	fmt.Printf("layers=%d lr=%.2f\n", best.Point.Int("layers"), best.Point.Float("lr"))
	// Output: layers=3 lr=0.01
}

// Visits every point of a small space.
func ExampleNewGrid() {
	space, err := optimize.NewSpace(optimize.Double("momentum", 0.1, 0.35).By(0.1), optimize.Categorical("optimizer", "sgd", "adam"))
	if err != nil {
		panic(err)
	}
	grid, err := optimize.NewGrid(space)
	if err != nil {
		panic(err)
	}
	study := optimize.NewStudy(space, optimize.Options{Sampler: grid})
	for {
		trial, err := study.Ask(context.Background())
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(trial.Point)
	}
	// Output:
	// momentum=0.1 optimizer=sgd
	// momentum=0.1 optimizer=adam
	// momentum=0.2 optimizer=sgd
	// momentum=0.2 optimizer=adam
	// momentum=0.3 optimizer=sgd
	// momentum=0.3 optimizer=adam
	// search space is exhausted: every point was suggested
}
