// SPDX-License-Identifier: Apache-2.0

package stopping_test

import (
	"fmt"

	"diwan.dev/diwan/optimize/stopping"
)

// Stops the fourth trial, which falls behind the three before it.
func Example() {
	rule, err := stopping.New("medianstop", map[string]string{"start_step": "2"})
	if err != nil {
		panic(err)
	}
	curves := stopping.NewCurves(stopping.Minimize)
	for trial := range 4 {
		for epoch := 1; epoch <= 5; epoch++ {
			curves.Report(trial, epoch, float64(trial)+1/float64(epoch))
			if v := rule.Judge(curves, trial); v.Stop {
				fmt.Printf("trial %d stops: %s\n", trial, v.Reason)
				curves.End(trial, stopping.Stopped)
				break
			}
		}
		if trial < 3 {
			curves.End(trial, stopping.Complete)
		}
	}
	// Output:
	// trial 3 stops: its best value up to step 2, 3.5, is above 1.75, the median of the averages of 3 complete trials up to then
}
