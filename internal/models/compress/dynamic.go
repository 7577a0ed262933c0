// SPDX-License-Identifier: Apache-2.0

package compress

import (
	"errors"
	"fmt"
	"slices"

	"diwan.dev/diwan/internal/models/onnx"
)

// dynamic makes of MatMul, Gemm and Conv with constant weights the integer operators, with the nodes that
// onnxruntime's quantize_dynamic makes and its optimizer fuses:
//
//	q, s, z = DynamicQuantizeLinear(x)
//	y = Cast(MatMulInteger(q, w, z)) · (s · scale) + bias
//
// Other weights are quantized as [Int8] does.
func (r *rewrite) dynamic(reduceRange bool) error {
	if err := r.raise(); err != nil {
		return err
	}
	d := &dynamic{rewrite: r, limit: 127, inputs: map[string][3]string{}, made: map[string]*integers{}}
	if reduceRange {
		d.limit = 63
	}
	for _, n := range r.Graph.Nodes {
		changed, err := d.node(n)
		if err != nil {
			return err
		}
		if !changed {
			d.nodes = append(d.nodes, n)
		}
	}
	r.Graph.Nodes = d.nodes
	r.count()
	return r.weightOnly()
}

type dynamic struct {
	*rewrite
	limit  float32
	nodes  []*onnx.Node
	inputs map[string][3]string // the quantized value, its scale and its zero point
	made   map[string]*integers
}

// integers are a weight in 8 bits, as names of initializers.
type integers struct{ values, scale, zero string }

func (d *dynamic) add(op, name string, outputs []string, inputs ...string) {
	d.nodes = append(d.nodes, &onnx.Node{Name: name, Op: op, Inputs: inputs, Outputs: outputs})
}

// quantizeInput quantizes an activation, once for all that use it.
func (d *dynamic) quantizeInput(name string) [3]string {
	if made, has := d.inputs[name]; has {
		return made
	}
	made := [3]string{d.name(name, "quantized"), d.name(name, "scale"), d.name(name, "zero_point")}
	d.add("DynamicQuantizeLinear", d.name(name, "quantize"), made[:], name)
	d.inputs[name] = made
	return made
}

// node adds what becomes of a node. changed is false if it stays as it is.
func (d *dynamic) node(n *onnx.Node) (changed bool, err error) {
	if len(n.Inputs) < 2 || len(n.Outputs) != 1 {
		return false, nil
	}
	t := d.weights[n.Inputs[1]]
	if t == nil || d.weights[n.Inputs[0]] != nil || t.Elements() < minWeights {
		return false, nil
	}
	bias := ""
	if len(n.Inputs) > 2 {
		bias = n.Inputs[2]
	}
	var w *integers
	operator := "MatMulInteger"
	alpha := float32(1)
	switch {
	case n.Is("MatMul") && len(t.Dims) == 2:
		w, err = d.weight(t, 1, 1, false)
	case n.Is("Gemm") && len(t.Dims) == 2 && n.Int("transA", 0) == 0 && (bias == "" || n.Float("beta", 1) == 1):
		alpha = n.Float("alpha", 1)
		if n.Int("transB", 0) != 0 {
			w, err = d.weight(t, 0, alpha, true)
		} else {
			w, err = d.weight(t, 1, alpha, false)
		}
	case n.Is("Conv") && len(t.Dims) >= 3:
		operator = "ConvInteger"
		if bias != "" && d.weights[bias] == nil {
			return false, nil
		}
		if w, err = d.kernel(t); err == nil && bias != "" {
			// A bias per channel, before the spatial dimensions.
			d.done[bias] = true
			bias = d.constant(d.name(bias, "reshaped"), onnx.Float32, d.weights[bias].Values, channels(t)...)
		}
	default:
		return false, nil
	}
	if errors.Is(err, errNotFinite) {
		d.reasons[t.Name] = err.Error()
		return false, nil
	} else if err != nil {
		return false, err
	}
	d.compressed(t)
	x := d.quantizeInput(n.Inputs[0])
	out := n.Outputs[0]
	step := func(suffix string) []string { return []string{d.name(out, suffix)} }
	scale, sum, product := step("scale"), step("int32"), step("float32")
	d.add("Mul", scale[0], scale, x[1], w.scale)
	integer := *n
	integer.Op, integer.Outputs = operator, sum
	integer.Inputs = []string{x[0], w.values, x[2]}
	if w.zero != "" {
		integer.Inputs = append(integer.Inputs, w.zero)
	}
	if operator == "MatMulInteger" {
		integer.Attributes = nil // Gemm's
	}
	d.nodes = append(d.nodes, &integer)
	d.nodes = append(d.nodes, &onnx.Node{
		Name: product[0], Op: "Cast", Inputs: sum, Outputs: product, Attributes: []onnx.Attribute{onnx.IntAttribute("to", int64(onnx.Float32))},
	})
	if bias == "" {
		d.add("Mul", d.name(out, "scaled"), []string{out}, product[0], scale[0])
		return true, nil
	}
	scaled := step("scaled")
	d.add("Mul", scaled[0], scaled, product[0], scale[0])
	d.add("Add", d.name(out, "biased"), []string{out}, scaled[0], bias)
	return true, nil
}

// weight makes a matrix of integers, whose columns have a scale each. alpha is multiplied into these.
func (d *dynamic) weight(t *onnx.Tensor, axis int, alpha float32, transpose bool) (*integers, error) {
	key := fmt.Sprint(t.Name, " ", axis, " ", alpha, " ", transpose)
	if made := d.made[key]; made != nil {
		return made, nil
	}
	q, err := quantize(t, axis, d.limit, 0)
	if err != nil {
		return nil, err
	}
	scales := make([]float32, len(q.scales))
	for i, scale := range q.scales {
		scales[i] = scale * alpha
	}
	rows, columns := t.Dims[0], t.Dims[1]
	if transpose {
		q.values = transposed{q.values, rows, columns}
		rows, columns = columns, rows
	}
	made := &integers{
		values: d.constant(d.name(t.Name, "int8"), onnx.Int8, q.values, rows, columns),
		scale:  d.constant(d.name(t.Name, "scale"), onnx.Float32, float32s(scales...), columns),
	}
	d.made[key] = made
	return made, nil
}

// kernel makes a kernel of integers, with a scale per channel. onnxruntime has ConvInteger for
// unsigned weights alone.
func (d *dynamic) kernel(t *onnx.Tensor) (*integers, error) {
	if made := d.made[t.Name]; made != nil {
		return made, nil
	}
	q, err := quantize(t, 0, d.limit, 128)
	if err != nil {
		return nil, err
	}
	made := &integers{
		values: d.constant(d.name(t.Name, "uint8"), onnx.Uint8, q.values, t.Dims...),
		scale:  d.constant(d.name(t.Name, "scale"), onnx.Float32, float32s(q.scales...), channels(t)...),
		zero:   d.constant(d.name(t.Name, "zero_point"), onnx.Uint8, onnx.Bytes{128}),
	}
	d.made[t.Name] = made
	return made, nil
}

// channels is the shape of a value per channel of a kernel's output, before its spatial dimensions.
func channels(kernel *onnx.Tensor) []int64 {
	return append([]int64{kernel.Dims[0]}, slices.Repeat([]int64{1}, len(kernel.Dims)-2)...)
}
