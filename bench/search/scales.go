// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// scaled returns the searches of a scale.
func scaled(scale string, first int) ([]campaign, error) {
	cheapAndOurs, err := chosen("ours,cheap")
	if err != nil {
		return nil, err
	}
	everyone, err := chosen("all")
	if err != nil {
		return nil, err
	}
	synthetic := []string{"bbob", "mixed", "noisy"}
	switch scale {
	case "smoke":
		return []campaign{
			{families: []string{"bbob", "mixed", "noisy", "model"}, dims: []int{2, 5}, first: first, n: 1, sample: 8, optimisers: cheapAndOurs, seeds: 1, parallel: []int{1, 10}, trials: 50},
		}, nil
	case "quick":
		return []campaign{
			{families: append(synthetic, "model"), dims: []int{2, 5, 10, 20}, first: first, n: 2, sample: 64, optimisers: cheapAndOurs, seeds: 1, parallel: []int{1, 10}, trials: 200},
			{families: append(synthetic, "model"), dims: []int{2, 5, 10, 20}, first: first, n: 2, sample: 20, optimisers: everyone, seeds: 1, parallel: []int{1}, trials: 100},
			{families: []string{"anchor"}, optimisers: cheapAndOurs, seeds: 3, parallel: []int{1}, trials: 200},
		}, nil
	case "full":
		return []campaign{
			{families: append(synthetic, "model"), dims: []int{2, 5, 10, 20}, first: first, n: 3, optimisers: cheapAndOurs, seeds: 3, parallel: []int{1, 10}, trials: 200},
			{families: append(synthetic, "model"), dims: []int{2, 5, 10, 20}, first: first, n: 2, sample: 160, optimisers: everyone, seeds: 2, parallel: []int{1, 10}, trials: 200},
			{families: []string{"anchor"}, optimisers: everyone, seeds: 10, parallel: []int{1}, trials: 200},
		}, nil
	}
	return nil, fmt.Errorf("unknown scale %q: want smoke, quick or full", scale)
}
