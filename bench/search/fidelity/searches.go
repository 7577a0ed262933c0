// SPDX-License-Identifier: Apache-2.0

package fidelity

import "diwan.dev/diwan/optimize"

// Ours returns our searches: those over a resource, and those whose trials are
// stopped by a rule.
func Ours() []Search {
	searches := []Search{Random()}
	for _, name := range []string{"asha", "hyperband", "bohb"} {
		searches = append(searches, named(name, nil))
	}
	return append(searches,
		named("asha", map[string]string{"sampler": "multivariate-tpe"}),
		Stopped("random, medianstop", nil, "random", "medianstop", nil),
		Stopped("multivariate-tpe, medianstop", nil, "multivariate-tpe", "medianstop", nil),
		Stopped("multivariate-tpe, successivehalving", nil, "multivariate-tpe", "successivehalving", nil),
		Stopped("multivariate-tpe, hyperband", nil, "multivariate-tpe", "hyperband", nil),
		Stopped("multivariate-tpe, curvefitting", nil, "multivariate-tpe", "curvefitting", nil),
	)
}

// named is one of our searches over a resource, by the name of its algorithm.
func named(algorithm string, settings map[string]string) Search {
	name := algorithm
	if sampler, ok := settings["sampler"]; ok {
		name += ", " + sampler
	}
	return Rungs(name, func(space *optimize.Space, seed uint64) (optimize.Sampler, error) {
		all := map[string]string{"resource_name": resource, "r_l": "81"}
		for name, value := range settings {
			all[name] = value
		}
		return optimize.New(algorithm, all, optimize.Problem{Space: space, Seed: seed})
	})
}

// Optuna returns Optuna's searches: its samplers with its pruners, run by
// a Python and a program.
func Optuna(python, program string) []Search {
	var searches []Search
	for _, c := range []struct{ sampler, pruner, name string }{
		{"tpe", "median", "TPE, MedianPruner"},
		{"tpe", "halving", "TPE, SuccessiveHalvingPruner"},
		{"tpe", "hyperband", "TPE, HyperbandPruner"},
		{"random", "hyperband", "random, HyperbandPruner"},
	} {
		searches = append(searches, Pruned("Optuna: "+c.name, python, program, c.sampler, c.pruner))
	}
	return searches
}
