// SPDX-License-Identifier: Apache-2.0

package compress

import (
	"fmt"
	"math"

	"diwan.dev/diwan/internal/models/onnx"
)

// minOpset is the oldest version from which a model is raised: before, operators broadcast by attributes.
const minOpset = 7

// changes are the versions from 8 to 13 that gave an operator another meaning or other inputs.
// https://github.com/onnx/onnx/blob/main/docs/Changelog.md
var changes = map[string]int64{
	"Upsample": 9, "Scan": 9, "BatchNormalization": 9,
	"Slice": 10, "TopK": 10,
	"Clip": 11, "Pad": 11, "Resize": 11, "Scatter": 11,
	"Dropout": 12,
	"Softmax": 13, "LogSoftmax": 13, "Hardmax": 13, "Squeeze": 13, "Unsqueeze": 13, "ReduceSum": 13, "Split": 13,
}

// raise raises the version of ONNX's operators to opsetNeeded if it is less, and adapts the
// operators that changed.
func (r *rewrite) raise() error {
	from := r.Version("")
	if from >= opsetNeeded {
		return nil
	}
	if from > 0 && from < minOpset {
		return fmt.Errorf("the model has version %d of ONNX's operators, and %d is needed: convert it with onnx.version_converter", from, opsetNeeded)
	}
	var nodes []*onnx.Node
	for _, n := range r.Graph.Nodes {
		adapted, err := r.adapt(n, from)
		if err != nil {
			return err
		}
		nodes = append(nodes, adapted...)
		for _, a := range n.Attributes {
			for _, g := range a.Graphs {
				if err := unchanged(g, from); err != nil {
					return err
				}
			}
		}
	}
	r.Graph.Nodes = nodes
	r.IRVersion = max(r.IRVersion, 7) // which came with version 13
	r.SetVersion("", opsetNeeded)
	r.count()
	return nil
}

// unchanged checks that no operator in a graph inside of a node changed.
func unchanged(g *onnx.Graph, from int64) error {
	for _, n := range g.Nodes {
		if changes[n.Op] > from && n.Is(n.Op) {
			return cannotRaise(n, from)
		}
		for _, a := range n.Attributes {
			for _, inner := range a.Graphs {
				if err := unchanged(inner, from); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func cannotRaise(n *onnx.Node, from int64) error {
	return fmt.Errorf("the model has version %d of ONNX's operators, %d is needed, and node %q (%s) changed: convert the model with onnx.version_converter",
		from, opsetNeeded, n.Name, n.Op)
}

// adapt makes of a node what computes the same with the operators of opsetNeeded.
func (r *rewrite) adapt(n *onnx.Node, from int64) ([]*onnx.Node, error) {
	if changes[n.Op] <= from || !n.Is(n.Op) || len(n.Inputs) == 0 || len(n.Outputs) == 0 {
		return []*onnx.Node{n}, nil
	}
	switch n.Op {
	case "BatchNormalization":
		if n.Int("spatial", 1) != 1 {
			return nil, cannotRaise(n, from)
		}
		n.Remove("spatial")
	case "Clip":
		r.input(n, 1, "min", onnx.Float32, float32s(n.Float("min", -math.MaxFloat32)))
		r.input(n, 2, "max", onnx.Float32, float32s(n.Float("max", math.MaxFloat32)))
	case "Dropout":
		// It passes its input through when a model is used.
		if len(n.Outputs) > 1 && n.Outputs[1] != "" {
			return nil, cannotRaise(n, from)
		}
		n.Remove("ratio")
	case "Slice":
		axes := n.Attribute("axes")
		for i, name := range []string{"starts", "ends", "axes"} {
			if name != "axes" || axes != nil {
				r.ints(n, i+1, name)
			}
		}
	case "Squeeze", "Unsqueeze", "ReduceSum":
		if n.Attribute("axes") != nil {
			r.ints(n, 1, "axes")
		}
	case "Split":
		if n.Attribute("split") != nil {
			r.ints(n, 1, "split")
		}
	case "Softmax", "LogSoftmax", "Hardmax":
		return r.softmax(n), nil
	default:
		return nil, cannotRaise(n, from)
	}
	return []*onnx.Node{n}, nil
}

// ints makes an input of an attribute that is a list.
func (r *rewrite) ints(n *onnx.Node, input int, attribute string) {
	var values []int64
	if a := n.Attribute(attribute); a != nil {
		values = a.Ints
	}
	r.input(n, input, attribute, onnx.Int64, int64s(values...), int64(len(values)))
}

// input makes an input of an attribute.
func (r *rewrite) input(n *onnx.Node, input int, attribute string, kind onnx.DataType, values onnx.Bytes, dims ...int64) {
	for len(n.Inputs) <= input {
		n.Inputs = append(n.Inputs, "")
	}
	n.Inputs[input] = r.constant(r.name(n.Outputs[0], attribute), kind, values, dims...)
	n.Remove(attribute)
}

// softmax adapts the operators that made two dimensions of all before version 13: those before
// the axis, and those from it on.
func (r *rewrite) softmax(n *onnx.Node) []*onnx.Node {
	axis := n.Int("axis", 1)
	n.Remove("axis")
	n.Attributes = append(n.Attributes, onnx.IntAttribute("axis", -1))
	if axis == -1 {
		return []*onnx.Node{n}
	}
	in, out := n.Inputs[0], n.Outputs[0]
	shape, flat, result := r.name(out, "shape"), r.name(out, "flat"), r.name(out, "result")
	n.Inputs[0], n.Outputs[0] = flat, result
	return []*onnx.Node{
		{Name: shape, Op: "Shape", Inputs: []string{in}, Outputs: []string{shape}},
		{Name: flat, Op: "Flatten", Inputs: []string{in}, Outputs: []string{flat}, Attributes: []onnx.Attribute{onnx.IntAttribute("axis", axis)}},
		n,
		{Name: r.name(out, "reshape"), Op: "Reshape", Inputs: []string{result, shape}, Outputs: []string{out}},
	}
}
