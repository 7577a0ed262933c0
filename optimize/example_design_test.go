// SPDX-License-Identifier: Apache-2.0

package optimize_test

import (
	"context"
	"fmt"

	"diwan.dev/diwan/optimize"
)

// list asks for some points and prints them.
func list(space *optimize.Space, sampler optimize.Sampler, points int) {
	study := optimize.NewStudy(space, optimize.Options{Sampler: sampler})
	for range points {
		trial, err := study.Ask(context.Background())
		if err != nil {
			panic(err)
		}
		fmt.Println(trial.Point)
	}
}

// Draws points from the distributions of their parameters. The same seed gives
// the same points.
func ExampleNewRandom() {
	space, err := optimize.NewSpace(optimize.Int("layers", 1, 8), optimize.Categorical("optimizer", "sgd", "adam"))
	if err != nil {
		panic(err)
	}
	list(space, optimize.NewRandom(1), 3)
	// Output:
	// layers=3 optimizer=sgd
	// layers=3 optimizer=adam
	// layers=5 optimizer=sgd
}

// Spreads points evenly: of any eight in a row from the first, each eighth of
// the range has one.
func ExampleNewSobol() {
	space, err := optimize.NewSpace(optimize.Int("eighth", 1, 8))
	if err != nil {
		panic(err)
	}
	sampler, err := optimize.NewSobol(space, 1)
	if err != nil {
		panic(err)
	}
	list(space, sampler, 8)
	// Unordered output:
	// eighth=1
	// eighth=2
	// eighth=3
	// eighth=4
	// eighth=5
	// eighth=6
	// eighth=7
	// eighth=8
}

// Gives the sequence as it was published.
func ExampleNewPlainSobol() {
	space, err := optimize.NewSpace(optimize.Double("x", 0, 1), optimize.Double("y", 0, 1))
	if err != nil {
		panic(err)
	}
	sampler, err := optimize.NewPlainSobol(space)
	if err != nil {
		panic(err)
	}
	list(space, sampler, 4)
	// Output:
	// x=0 y=0
	// x=0.5 y=0.5
	// x=0.75 y=0.25
	// x=0.25 y=0.75
}

// Visits all points of a small space in random order: the better choice where
// the search may end early.
func ExampleNewShuffledGrid() {
	space, err := optimize.NewSpace(optimize.Int("layers", 1, 2), optimize.Categorical("optimizer", "sgd", "adam"))
	if err != nil {
		panic(err)
	}
	sampler, err := optimize.NewShuffledGrid(space, 1)
	if err != nil {
		panic(err)
	}
	list(space, sampler, 4)
	// Unordered output:
	// layers=1 optimizer=sgd
	// layers=1 optimizer=adam
	// layers=2 optimizer=sgd
	// layers=2 optimizer=adam
}
