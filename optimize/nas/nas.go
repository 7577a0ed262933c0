// SPDX-License-Identifier: Apache-2.0

// Package nas makes the architecture of a neural network something that every
// sampler of package optimize can search.
//
// # The model
//
// A network is a chain of layers. Each layer is one operation, such as a
// convolution of some size, and may have skip connections from layers before
// the last, or from the input, on top of the one from the layer before it. This
// is the macro space of ENAS (Pham, Guan, Zoph, Le and Dean, "Efficient neural
// architecture search via parameter sharing", 2018, §2.3).
//
// A [Config] says what there is to choose from. [Config.Choices] lists the
// operations by number: each type with each combination of its parameters.
// [Space] is the search space: for layer 1 a parameter layer1.operation, for
// layer 2 layer2.operation and layer2.skip0, which is 1 where the input is
// connected to it too, and so on. A point of it is shown as Katib shows it, in
// two assignments: architecture, a list of a layer's decisions for each layer,
// and nn_config, what the numbers in it mean. [Architecture] reads a point.
//
// The sampler enas of package optimize is made for this space; random,
// regularized evolution and all others work on it too.
//
// [OneShot] is the space of DARTS, in which a single trial trains all
// operations at once and finds the architecture by itself: it has one point,
// with the choices.
package nas

import (
	"errors"
	"fmt"
	"strconv"

	"diwan.dev/diwan/optimize"
)

// Config describes the possible architectures.
type Config struct {
	// Layers is the number of layers, at least 1.
	Layers int
	// Inputs and Outputs are the sizes of the network's input and output in
	// each dimension, for the trial to know. None is below 1.
	Inputs, Outputs []int
	// Operations are the types of operations that a layer may be.
	Operations []Operation
}

// Operation is a type of operation with its parameters.
type Operation struct {
	Type string // not empty
	// Parameters have an end to their values: a double has a step. There may be
	// none: then the type is one operation.
	Parameters []optimize.Parameter
}

// Limits that keep an architecture readable in an assignment.
const (
	// MaxLayers bounds the layers of an architecture.
	MaxLayers = 100
	// MaxChoices bounds the operations that a layer may choose from.
	MaxChoices = 10000
)

// Space returns the space of the architectures of a config. It needs sizes of
// the input and the output.
func Space(c Config) (*optimize.Space, error) {
	choices, err := c.Choices()
	if err := errors.Join(c.validateGraph(), err); err != nil {
		return nil, err
	}
	operations := make([]string, len(choices))
	for i := range choices {
		operations[i] = strconv.Itoa(i)
	}
	var parameters []optimize.Parameter
	for l := range c.Layers {
		parameters = append(parameters, optimize.Categorical(fmt.Sprintf("layer%d.operation", l+1), operations...))
		for k := range l {
			parameters = append(parameters, optimize.Categorical(fmt.Sprintf("layer%d.skip%d", l+1, k), "0", "1"))
		}
	}
	space, err := optimize.NewSpace(parameters...)
	if err != nil {
		return nil, fmt.Errorf("cannot create space of architectures: %w", err)
	}
	p := presentation{config: c, choices: choices, names: parameters}
	return space.Presented(optimize.Presentation{Write: p.write, Read: p.read}), nil
}

func (c Config) validateGraph() error {
	var problems []error
	if c.Layers < 1 || c.Layers > MaxLayers {
		problems = append(problems, fmt.Errorf("number of layers is %d: want from 1 to %d", c.Layers, MaxLayers))
	}
	for _, sizes := range []struct {
		name string
		list []int
	}{{"input", c.Inputs}, {"output", c.Outputs}} {
		if len(sizes.list) == 0 {
			problems = append(problems, fmt.Errorf("%s sizes are missing: want the size of the network's %s in each dimension", sizes.name, sizes.name))
		}
		for _, size := range sizes.list {
			if size < 1 {
				problems = append(problems, fmt.Errorf("%s sizes have %d: want from 1", sizes.name, size))
			}
		}
	}
	return errors.Join(problems...)
}

// Layer is the decisions about one layer.
type Layer struct {
	// Operation is the number of the layer's among the choices.
	Operation int
	// Skips says of each layer before the last, 0 being the input, whether
	// there is a skip connection from it.
	Skips []bool
}

// Architecture returns the layers that a point of [Space] is.
func Architecture(p optimize.Point, c Config) []Layer {
	layers := make([]Layer, c.Layers)
	for l := range layers {
		layers[l].Operation, _ = strconv.Atoi(p.Text(fmt.Sprintf("layer%d.operation", l+1))) // Space wrote it
		for k := range l {
			layers[l].Skips = append(layers[l].Skips, p.Text(fmt.Sprintf("layer%d.skip%d", l+1, k)) == "1")
		}
	}
	return layers
}
