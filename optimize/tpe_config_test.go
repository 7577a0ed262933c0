// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"slices"
	"testing"
)

func TestTPEGood(t *testing.T) {
	t.Parallel()
	optuna := TPEConfig{Gamma: 0.1, MinGood: 1, MaxGood: 25}
	hyperopt := TPEConfig{Gamma: 0.25, Root: true, MinGood: 1, MaxGood: 25}
	for _, test := range []struct {
		reason string
		config TPEConfig
		n      []int
		want   []int
	}{
		{"Optuna: ⌈0.1·n⌉, at most 25.", optuna, []int{1, 10, 11, 200, 250, 251, 10_000}, []int{1, 1, 2, 20, 25, 25, 25}},
		{"hyperopt: ⌈0.25·√n⌉, at most 25.", hyperopt, []int{1, 16, 17, 100, 10_000, 20_000}, []int{1, 1, 2, 3, 25, 25}},
		{"No more than there are.", DefaultTPEConfig(), []int{0, 1, 3, 10, 200}, []int{0, 1, 3, 4, 20}},
	} {
		var got []int
		for _, n := range test.n {
			got = append(got, test.config.good(n))
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s good(%v) = %v, want %v", test.reason, test.n, got, test.want)
		}
	}
}
