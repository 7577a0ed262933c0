// SPDX-License-Identifier: Apache-2.0

package tuning

import (
	"context"
	"maps"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/algorithm"
	"diwan.dev/diwan/internal/tuning/earlystopping"
	"diwan.dev/diwan/internal/tuning/searchspace"
	"diwan.dev/diwan/optimize"
)

// algorithms tells admission what the search library can do.
func algorithms() v1beta1.Algorithms {
	search := map[string]bool{}
	for _, algorithm := range optimize.Known() {
		search[algorithm.Name] = true
	}
	rules := map[string]bool{}
	for _, name := range earlystopping.Known() {
		rules[name] = true
	}
	return v1beta1.Algorithms{Search: search, EarlyStopping: rules, Check: searchspace.Check, CheckEarlyStopping: earlystopping.Check}
}

// services tells admission which algorithms are asked for elsewhere. What those
// can do they say themselves, when the experiment starts.
func services(directory algorithm.Directory) func(context.Context, v1beta1.Algorithms) (v1beta1.Algorithms, error) {
	return func(ctx context.Context, known v1beta1.Algorithms) (v1beta1.Algorithms, error) {
		found, err := directory.Services(ctx)
		if err != nil {
			return known, err
		}
		more := known
		more.Search, more.EarlyStopping = with(known.Search, found.Suggestions), with(known.EarlyStopping, found.EarlyStoppings)
		more.Check = func(spec *v1beta1.ExperimentSpec) error {
			if known.Search[spec.Algorithm.AlgorithmName] {
				return known.Check(spec)
			}
			return searchspace.CheckForService(spec)
		}
		more.CheckEarlyStopping = func(spec *v1beta1.EarlyStoppingSpec) error {
			if known.EarlyStopping[spec.AlgorithmName] {
				return known.CheckEarlyStopping(spec)
			}
			return nil
		}
		return more, nil
	}
}

// with adds names of services that can be asked to those that are known.
func with(known map[string]bool, services map[string]algorithm.Service) map[string]bool {
	all := maps.Clone(known)
	for name, service := range services {
		if service.Usable() {
			all[name] = true
		}
	}
	return all
}
