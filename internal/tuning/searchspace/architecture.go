// SPDX-License-Identifier: Apache-2.0

package searchspace

import (
	"fmt"

	"k8s.io/utils/ptr"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/optimize"
	"diwan.dev/diwan/optimize/nas"
)

// oneShot is the algorithm whose single trial searches by itself.
const oneShot = "darts"

// architectures returns the space of an experiment with a nasConfig.
func architectures(spec *v1beta1.ExperimentSpec) (*optimize.Space, error) {
	config, err := architecture(spec.NasConfig)
	if err != nil {
		return nil, fmt.Errorf("spec.nasConfig: %w", err)
	}
	var space *optimize.Space
	if spec.Algorithm != nil && spec.Algorithm.AlgorithmName == oneShot {
		space, err = nas.OneShot(config, oneShotSettings(spec.Algorithm.AlgorithmSettings))
	} else {
		space, err = nas.Space(config)
	}
	if err != nil {
		return nil, fmt.Errorf("spec.nasConfig: %w", err)
	}
	return space, nil
}

func architecture(c *v1beta1.NasConfig) (nas.Config, error) {
	config := nas.Config{
		Layers:  int(ptr.Deref(c.GraphConfig.NumLayers, 0)),
		Inputs:  whole(c.GraphConfig.InputSizes),
		Outputs: whole(c.GraphConfig.OutputSizes),
	}
	for i, o := range c.Operations {
		varying, err := parameters(o.Parameters)
		if err != nil {
			return config, fmt.Errorf("operation %d, %q: %w", i+1, o.OperationType, err)
		}
		config.Operations = append(config.Operations, nas.Operation{Type: o.OperationType, Parameters: varying})
	}
	return config, nil
}

func whole(sizes []int32) []int {
	out := make([]int, len(sizes))
	for i, s := range sizes {
		out[i] = int(s)
	}
	return out
}

func oneShotSettings(settings []v1beta1.AlgorithmSetting) []optimize.Assignment {
	out := make([]optimize.Assignment, len(settings))
	for i, s := range settings {
		out[i] = optimize.Assignment{Name: s.Name, Value: s.Value}
	}
	return out
}
