// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// scaled returns the searches of a scale. The dearer an optimizer, the fewer
// and shorter its searches; all meet on the same problems, since a smaller
// sample is a part of a greater one.
func scaled(scale string, first int) ([]campaign, error) {
	lists := map[string][]string{}
	for _, list := range []string{"ours", "cheap", "all"} {
		names, err := chosen(list)
		if err != nil {
			return nil, err
		}
		lists[list] = names
	}
	quickly := slices.Concat(lists["ours"], lists["cheap"])
	notSlowly := slices.DeleteFunc(slices.Clone(lists["all"]), func(name string) bool { return paceOf(name) == slow })
	everyone := lists["all"]

	dims, alone, both := []int{2, 5, 10, 20}, []int{1}, []int{1, 10}
	synthetic := []string{"bbob", "mixed", "noisy"}
	families := append(slices.Clone(synthetic), "model")
	switch scale {
	case "smoke":
		return []campaign{
			{families: families, dims: []int{2, 5}, first: first, n: 1, sample: 8, optimisers: quickly, seeds: 1, parallel: both, trials: 50},
		}, nil
	case "quick":
		return []campaign{
			{families: synthetic, dims: dims, first: first, n: 2, sample: 12, optimisers: quickly, seeds: 1, parallel: both, trials: 100},
			{families: []string{"model"}, first: first, n: 1, sample: 2, optimisers: quickly, seeds: 1, parallel: alone, trials: 50},
			{families: families, dims: dims, first: first, n: 2, sample: 4, optimisers: notSlowly, seeds: 1, parallel: alone, trials: 50, limit: time.Minute},
			{families: families, dims: dims, first: first, n: 2, sample: 2, optimisers: everyone, seeds: 1, parallel: alone, trials: 25, limit: 90 * time.Second},
			{families: []string{"anchor"}, optimisers: quickly, seeds: 1, parallel: alone, trials: 100},
		}, nil
	case "standard":
		return []campaign{
			{families: synthetic, dims: dims, first: first, n: 2, sample: 36, optimisers: notHyperopt(quickly), seeds: 1, parallel: alone, trials: 200},
			{families: synthetic, dims: dims, first: first, n: 2, sample: 21, optimisers: quickly, seeds: 1, parallel: alone, trials: 200},
			{families: synthetic, dims: dims, first: first, n: 2, sample: 12, optimisers: quickly, seeds: 1, parallel: both, trials: 200},
			{families: synthetic, dims: dims, first: first, n: 2, sample: 36, optimisers: notHyperopt(quickly), seeds: 1, parallel: []int{10}, trials: 50},
			{families: []string{"model"}, first: first, n: 1, sample: 3, optimisers: quickly, seeds: 1, parallel: alone, trials: 100},
			{families: families, dims: dims, first: first, n: 2, sample: 8, optimisers: notSlowly, seeds: 1, parallel: alone, trials: 100, limit: time.Minute},
			{families: families, dims: dims, first: first, n: 2, sample: 4, optimisers: everyone, seeds: 1, parallel: alone, trials: 50, limit: 2 * time.Minute},
			{families: []string{"anchor"}, optimisers: quickly, seeds: 1, parallel: alone, trials: 200},
		}, nil
	case "full":
		return []campaign{
			{families: families, dims: dims, first: first, n: 3, optimisers: quickly, seeds: 3, parallel: both, trials: 200},
			{families: families, dims: dims, first: first, n: 3, sample: 160, optimisers: notSlowly, seeds: 3, parallel: both, trials: 200, limit: 20 * time.Minute},
			{families: families, dims: dims, first: first, n: 3, sample: 40, optimisers: everyone, seeds: 3, parallel: alone, trials: 100, limit: 20 * time.Minute},
			{families: []string{"anchor"}, optimisers: notSlowly, seeds: 10, parallel: alone, trials: 200, limit: 20 * time.Minute},
		}, nil
	}
	return nil, fmt.Errorf("unknown scale %q: want smoke, quick, standard or full", scale)
}

// notHyperopt returns the names without hyperopt, whose cost grows with the
// square of the trials: two hundred take it a minute.
func notHyperopt(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return strings.HasPrefix(name, "hyperopt/") })
}

// only keeps the optimizers that a list asks for.
func only(campaigns []campaign, names []string) []campaign {
	for i := range campaigns {
		campaigns[i].optimisers = slices.DeleteFunc(slices.Clone(campaigns[i].optimisers), func(name string) bool {
			return !slices.ContainsFunc(names, func(wanted string) bool { return strings.EqualFold(wanted, name) })
		})
	}
	return campaigns
}
