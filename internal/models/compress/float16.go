// SPDX-License-Identifier: Apache-2.0

package compress

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/x448/float16"

	"diwan.dev/diwan/internal/models/onnx"
)

// maxFloat16 is the largest number in half precision.
const maxFloat16 = 65504

// precision says which values of an operator are of its type of floating-point numbers.
type precision struct {
	// inputs are the places of those among the inputs; all, if nil.
	inputs []int
	// outputs is how many of the outputs are, from the first; -1 for all.
	outputs int
	// either is for operators that take any type, so that nothing need be cast for them.
	either bool
}

// precisionOf says it of the operators that compute in half precision what they compute in float32.
func precisionOf(op string) (p precision, ok bool) {
	switch op {
	case "Abs", "Add", "AveragePool", "BatchNormalization", "Ceil", "Celu", "Clip", "Concat", "Conv", "ConvTranspose", "Cos", "Div",
		"Einsum", "Elu", "Erf", "Exp", "Flatten", "Floor", "Gelu", "Gemm", "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool",
		"HardSigmoid", "HardSwish", "Identity", "InstanceNormalization", "LayerNormalization", "LeakyRelu", "Log", "LogSoftmax",
		"LpNormalization", "LRN", "MatMul", "Max", "Mean", "Min", "Mish", "Mul", "Neg", "Pow", "PRelu", "Reciprocal", "Relu", "Round",
		"Selu", "Sigmoid", "Sin", "Softmax", "Softplus", "Softsign", "Sqrt", "Sub", "Sum", "Tanh", "ThresholdedRelu", "Transpose":
		return precision{outputs: -1}, true
	case "Split":
		return precision{inputs: []int{0}, outputs: -1}, true
	case "DepthToSpace", "Dropout", "Expand", "Gather", "GatherElements", "GatherND", "MaxPool", "ReduceL1", "ReduceL2", "ReduceLogSumExp",
		"ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare", "Reshape", "Resize", "Slice",
		"SpaceToDepth", "Squeeze", "Tile", "Unsqueeze", "Upsample":
		return precision{inputs: []int{0}, outputs: 1}, true
	case "Pad", "ScatterElements", "ScatterND":
		return precision{inputs: []int{0, 2}, outputs: 1}, true
	case "Where":
		return precision{inputs: []int{1, 2}, outputs: 1}, true
	case "LSTM":
		return precision{inputs: []int{0, 1, 2, 3, 5, 6, 7}, outputs: -1}, true
	case "GRU", "RNN":
		return precision{inputs: []int{0, 1, 2, 3, 5}, outputs: -1}, true
	case "ArgMax", "ArgMin", "Cast", "Shape", "Size":
		return precision{inputs: []int{0}, either: true}, true
	}
	return precision{}, false
}

// halving is a model that is brought to half precision. Every name means the value in the type that it had;
// the same in half precision has a name of its own. Either is made of the other by a Cast where
// something needs it.
type halving struct {
	*rewrite
	nodes []*onnx.Node
	types map[string]onnx.DataType
	// halves are the names in half precision of values that have been made in it.
	halves map[string]string
	// only are the values that have not been made in float32.
	only map[string]bool
}

// half brings the model to half precision.
func (r *rewrite) half() error {
	if version := r.Version(""); version > 0 && version < minOpset {
		return fmt.Errorf("the model has version %d of ONNX's operators, and %d is needed: convert it with onnx.version_converter", version, minOpset)
	}
	h := &halving{rewrite: r, types: map[string]onnx.DataType{}, halves: map[string]string{}, only: map[string]bool{}}
	for _, list := range [][]*onnx.ValueInfo{r.Graph.ValueInfos, r.Graph.Inputs, r.Graph.Outputs} {
		for _, v := range list {
			h.types[v.Name] = v.Type
		}
	}
	for _, t := range r.Graph.Initializers {
		h.types[t.Name] = t.Type
	}
	for _, n := range r.Graph.Nodes {
		if err := h.node(n); err != nil {
			return err
		}
	}
	for _, v := range r.Graph.Outputs {
		h.single(v.Name)
	}
	r.Graph.Nodes = h.nodes
	return nil
}

func (h *halving) node(n *onnx.Node) error {
	p, known := precisionOf(n.Op)
	known = known && n.Is(n.Op)
	places := p.inputs
	if known && places == nil {
		for i := range n.Inputs {
			places = append(places, i)
		}
	}
	places = slices.DeleteFunc(slices.Clone(places), func(i int) bool { return i >= len(n.Inputs) || n.Inputs[i] == "" })
	outputs := n.Outputs
	if known && !p.either && p.outputs >= 0 && p.outputs < len(outputs) {
		outputs = outputs[:p.outputs]
	}
	convert := known && !p.either && len(places) > 0 && (n.Op != "LayerNormalization" || len(n.Outputs) == 1)
	for _, i := range places {
		convert = convert && h.types[n.Inputs[i]] == onnx.Float32
	}
	kind := h.typeOf(n, known && !p.either, places)
	for _, name := range outputs {
		if h.types[name] == onnx.Undefined {
			h.types[name] = kind
		}
	}
	if !convert {
		for i, name := range n.Inputs {
			if known && p.either && h.only[name] {
				n.Inputs[i] = h.halves[name]
				continue
			}
			h.single(name)
			if h.weights[name] != nil {
				h.reasons[name] = "its operator " + n.Op + " is not one that it is done for"
			}
		}
		n.Inner(h.single)
		h.nodes = append(h.nodes, n)
		return nil
	}
	for _, i := range places {
		name, err := h.halved(n.Inputs[i])
		if err != nil {
			return err
		}
		n.Inputs[i] = name
	}
	h.nodes = append(h.nodes, n)
	for i, name := range outputs {
		if name == "" {
			continue
		}
		n.Outputs[i] = h.name(name, "float16")
		h.halves[name], h.only[name], h.types[name] = n.Outputs[i], true, onnx.Float32
	}
	return nil
}

// typeOf is the type of a node's outputs, Undefined if that is not known.
func (h *halving) typeOf(n *onnx.Node, same bool, places []int) onnx.DataType {
	switch {
	case same && len(places) > 0:
		return h.types[n.Inputs[places[0]]]
	case n.Is("Cast"):
		return onnx.DataType(n.Int("to", 0))
	case n.Is("Constant") || n.Is("ConstantOfShape"):
		if a := n.Attribute("value"); a != nil && a.Tensor != nil {
			return a.Tensor.Type
		}
		if n.Attribute("value_float") != nil || n.Attribute("value_floats") != nil || n.Is("ConstantOfShape") {
			return onnx.Float32
		}
	}
	return onnx.Undefined
}

func (h *halving) cast(from, to string, kind onnx.DataType) {
	h.nodes = append(h.nodes, &onnx.Node{
		Name: h.name(to, "cast"), Op: "Cast", Inputs: []string{from}, Outputs: []string{to}, Attributes: []onnx.Attribute{onnx.IntAttribute("to", int64(kind))},
	})
}

// single makes a value in the type that it had, if it was not.
func (h *halving) single(name string) {
	if h.only[name] {
		h.cast(h.halves[name], name, onnx.Float32)
		delete(h.only, name)
	}
}

// halved makes a value in half precision, if it was not, and returns its name.
func (h *halving) halved(name string) (string, error) {
	if made := h.halves[name]; made != "" {
		return made, nil
	}
	made := h.name(name, "float16")
	h.halves[name] = made
	t := h.weights[name]
	if t == nil {
		h.cast(name, made, onnx.Float16)
		return made, nil
	}
	err := floats(t.Values, func(_ int64, piece []float32) error {
		for _, value := range piece {
			if math.Abs(float64(value)) > maxFloat16 && finite(value) {
				h.report.Clamped++
			}
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	h.constant(made, onnx.Float16, each(t.Values, 2*t.Elements(), float16s), t.Dims...)
	h.compressed(t)
	return made, nil
}

// float16s are numbers in half precision. Those beyond its range become its largest: masks
// are often such numbers, and infinities would make others not a number.
func float16s(out []byte, _ int64, piece []float32) []byte {
	for _, value := range piece {
		if finite(value) {
			value = max(-maxFloat16, min(maxFloat16, value))
		}
		out = binary.LittleEndian.AppendUint16(out, float16.Fromfloat32(value).Bits())
	}
	return out
}
