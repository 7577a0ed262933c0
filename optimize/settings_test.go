// SPDX-License-Identifier: Apache-2.0

package optimize_test

import (
	"maps"
	"testing"

	"diwan.dev/diwan/optimize"
)

// TestHugeSettings asks each algorithm for a suggestion with each of its numbers
// as great as can be written: a program that serves many searches is not ended
// by one of them.
func TestHugeSettings(t *testing.T) {
	t.Parallel()
	for _, a := range optimize.Known() {
		space, _, required, err := searched(a.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, setting := range a.Settings {
			for _, value := range []string{"9223372036854775807", "1000000000", "1e300", "1e-300", "1.0000000001"} {
				settings := map[string]string{setting: value}
				for name, own := range required {
					if name != setting {
						settings[name] = own
					}
				}
				sampler, err := optimize.New(a.Name, maps.Clone(settings), optimize.Problem{Space: space})
				if err != nil {
					continue
				}
				study := optimize.NewStudy(space, optimize.Options{Sampler: sampler})
				for range 3 {
					trial, err := study.Ask(t.Context())
					if err != nil {
						t.Errorf("%s with %s=%s: %v", a.Name, setting, value, err)
						break
					}
					if err := study.Tell(trial.Index, 1); err != nil {
						t.Error(err)
					}
				}
			}
		}
	}
}
