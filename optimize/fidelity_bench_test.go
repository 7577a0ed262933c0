// SPDX-License-Identifier: Apache-2.0

package optimize_test

import (
	"fmt"
	"math"
	"testing"

	"diwan.dev/diwan/optimize"
)

// BenchmarkFidelity asks the samplers over a resource for a suggestion after
// many trials.
func BenchmarkFidelity(b *testing.B) {
	for _, name := range []string{"asha", "hyperband"} {
		for _, trials := range []int{1000, 10_000} {
			b.Run(fmt.Sprintf("%s/%d", name, trials), func(b *testing.B) {
				parameters := []optimize.Parameter{optimize.Int("epochs", 1, 81)}
				for i := range 20 {
					parameters = append(parameters, optimize.Double(fmt.Sprint("x", i), 0, 1))
				}
				space, err := optimize.NewSpace(parameters...)
				if err != nil {
					b.Fatal(err)
				}
				sampler, err := optimize.New(name, map[string]string{"resource_name": "epochs", "r_l": "81"}, optimize.Problem{Space: space})
				if err != nil {
					b.Fatal(err)
				}
				study := optimize.NewStudy(space, optimize.Options{Sampler: sampler})
				ask := func() {
					trial, err := study.Ask(b.Context())
					if err != nil {
						b.Fatal(err)
					}
					if err := study.Tell(trial.Index, math.Abs(trial.Point.Float("x0")-0.3)+1/trial.Point.Float("epochs")); err != nil {
						b.Fatal(err)
					}
				}
				for range trials {
					ask()
				}
				for b.Loop() {
					ask()
				}
			})
		}
	}
}
