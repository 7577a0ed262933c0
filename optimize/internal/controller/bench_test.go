// SPDX-License-Identifier: Apache-2.0

package controller

import "testing"

func BenchmarkStep(b *testing.B) {
	c := New(Config{Layers: 12, Operations: 12, Hidden: 64, Temperature: 5, Tanh: 2.25, EntropyWeight: 1e-5, SkipTarget: 0.4, SkipWeight: 0.8, LearningRate: 5e-5}, numbers(1))
	random := numbers(2)
	episodes := []Episode{{Decisions: c.Sample(random), Advantage: 1}, {Decisions: c.Sample(random), Advantage: -1}}
	for b.Loop() {
		c.Learn(episodes, 1, random)
	}
}
