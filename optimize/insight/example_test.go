// SPDX-License-Identifier: Apache-2.0

package insight_test

import (
	"context"
	"fmt"

	"diwan.dev/diwan/optimize"
	"diwan.dev/diwan/optimize/insight"
)

// Finds out which of two parameters matters.
func ExampleModel_Importance() {
	space, err := optimize.NewSpace(optimize.Double("rate", 1e-4, 1).Log(), optimize.Int("workers", 1, 8))
	if err != nil {
		panic(err)
	}
	study := optimize.NewStudy(space, optimize.Options{Sampler: optimize.NewRandom(1)})
	history := optimize.NewHistory(space)
	for range 300 {
		trial, err := study.Ask(context.Background())
		if err != nil {
			panic(err)
		}
		loss := trial.Point.Float("rate") * 10
		if err := history.Tell(history.Add(trial.Point), optimize.Values(loss)); err != nil {
			panic(err)
		}
	}
	model, err := insight.Fit(history, insight.Options{})
	if err != nil {
		panic(err)
	}
	for _, share := range model.Importance() {
		fmt.Printf("%s %.1f\n", share.Name, share.Share)
	}
	// Output:
	// rate 1.0
	// workers 0.0
}
