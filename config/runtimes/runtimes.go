// SPDX-License-Identifier: Apache-2.0

// Package runtimes carries the ClusterTrainingRuntimes that TrainJobs find in
// every cluster of Diwan's: Kubeflow Trainer's, under their names, and those that
// it has not (plain MPI, TensorFlow).
package runtimes

import (
	"embed"
	"fmt"

	"sigs.k8s.io/yaml"

	"diwan.dev/diwan/api/trainer/v1alpha1"
)

//go:embed *.yaml
var files embed.FS

// Version is that of Kubeflow Trainer's API which they are for.
const Version = "v2.3.0"

// All returns every runtime, in the order of their names. The caller owns the
// result.
func All() ([]*v1alpha1.ClusterTrainingRuntime, error) {
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil, fmt.Errorf("cannot list embedded runtimes: %w", err)
	}
	var all []*v1alpha1.ClusterTrainingRuntime
	for _, e := range entries {
		text, err := files.ReadFile(e.Name())
		if err != nil {
			return nil, fmt.Errorf("cannot read embedded runtime %s: %w", e.Name(), err)
		}
		r := &v1alpha1.ClusterTrainingRuntime{}
		if err := yaml.UnmarshalStrict(text, r); err != nil {
			return nil, fmt.Errorf("cannot decode embedded runtime %s: %w", e.Name(), err)
		}
		all = append(all, r)
	}
	return all, nil
}
