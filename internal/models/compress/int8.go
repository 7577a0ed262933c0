// SPDX-License-Identifier: Apache-2.0

package compress

import (
	"errors"
	"math"
	"slices"

	"diwan.dev/diwan/internal/models/onnx"
)

var errNotFinite = errors.New("it has values that are infinite or not a number")

// quantized is a weight in 8 bits: value = scale · q, q between -limit and limit.
type quantized struct {
	scales []float32 // one, or one per entry of the axis
	values onnx.Values
}

// quantize quantizes a tensor symmetrically: per entry of an axis, or as a whole if that is -1.
// offset is added to what is stored, 128 for uint8.
func quantize(t *onnx.Tensor, axis int, limit float32, offset int32) (*quantized, error) {
	channels, inner := int64(1), t.Elements()
	if axis >= 0 {
		channels, inner = t.Dims[axis], 1
		for _, dim := range t.Dims[axis+1:] {
			inner *= dim
		}
	}
	q := &quantized{scales: make([]float32, channels)}
	// runs calls visit with the runs of values that have a scale in common.
	runs := func(at int64, piece []float32, visit func(channel int64, run []float32)) {
		for len(piece) > 0 {
			n := min(int64(len(piece)), inner-at%inner)
			visit(at/inner%channels, piece[:n])
			at, piece = at+n, piece[n:]
		}
	}
	err := floats(t.Values, func(at int64, piece []float32) error {
		ok := true
		runs(at, piece, func(channel int64, run []float32) {
			for _, value := range run {
				ok = ok && finite(value)
				q.scales[channel] = max(q.scales[channel], float32(math.Abs(float64(value))))
			}
		})
		if !ok {
			return errNotFinite
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i, largest := range q.scales {
		// Not a subnormal number, which processors flush to zero.
		q.scales[i] = max(largest/limit, 0x1p-126)
		if largest == 0 {
			q.scales[i] = 1
		}
	}
	q.values = each(t.Values, t.Elements(), func(out []byte, at int64, piece []float32) []byte {
		runs(at, piece, func(channel int64, run []float32) {
			scale := float64(q.scales[channel])
			for _, value := range run {
				rounded := math.RoundToEven(float64(value) / scale)
				out = append(out, byte(int32(max(-float64(limit), min(float64(limit), rounded)))+offset))
			}
		})
		return out
	})
	return q, nil
}

// weightOnly puts weights in 8 bits, and DequantizeLinear before what uses them.
func (r *rewrite) weightOnly() error {
	raised := false
	var before []*onnx.Node
	replaced := map[*onnx.Tensor]bool{}
	for _, t := range r.constants() {
		axis, ok := r.matrix(t)
		table := !ok && r.table(t)
		if !ok && !table {
			continue
		}
		if !ok || t.Elements()/t.Dims[axis] < minPerScale {
			axis = -1
		}
		q, err := quantize(t, axis, 127, 0)
		if errors.Is(err, errNotFinite) {
			r.reasons[t.Name] = err.Error()
			continue
		} else if err != nil {
			return err
		}
		if !raised {
			if err := r.raise(); err != nil {
				return err
			}
			raised = true
		}
		r.compressed(t)
		bits := r.constant(r.name(t.Name, "int8"), onnx.Int8, q.values, t.Dims...)
		scale := r.name(t.Name, "scale")
		var attributes []onnx.Attribute
		if axis < 0 {
			r.constant(scale, onnx.Float32, float32s(q.scales...))
		} else {
			r.constant(scale, onnx.Float32, float32s(q.scales...), t.Dims[axis])
			attributes = append(attributes, onnx.IntAttribute("axis", int64(axis)))
		}
		if table {
			r.gather(t.Name, bits, scale)
			continue
		}
		// The weight is now a value of the same name, so what uses it stays.
		before = append(before, &onnx.Node{
			Name: r.name(t.Name, "dequantize"), Op: "DequantizeLinear", Inputs: []string{bits, scale}, Outputs: []string{t.Name}, Attributes: attributes,
		})
		replaced[t] = true
	}
	r.Graph.Nodes = append(before, r.Graph.Nodes...)
	r.Graph.Initializers = slices.DeleteFunc(r.Graph.Initializers, func(t *onnx.Tensor) bool { return replaced[t] })
	return nil
}

// constants are the weights in the order of the model.
func (r *rewrite) constants() []*onnx.Tensor {
	var all []*onnx.Tensor
	for _, t := range r.Graph.Initializers {
		if r.weights[t.Name] == t && !r.done[t.Name] {
			all = append(all, t)
		}
	}
	return all
}

// table says whether a weight is an embedding: rows are looked up in it, and nothing else uses it.
func (r *rewrite) table(t *onnx.Tensor) bool {
	if t.Elements() < minWeights || r.fixed[t.Name] || len(r.uses[t.Name]) == 0 {
		return false
	}
	for _, u := range r.uses[t.Name] {
		if !u.node.Is("Gather") || u.input != 0 || len(u.node.Outputs) != 1 {
			return false
		}
	}
	return true
}

// gather looks rows up in a table of 8 bits, and dequantizes these alone.
func (r *rewrite) gather(table, bits, scale string) {
	var nodes []*onnx.Node
	for _, n := range r.Graph.Nodes {
		nodes = append(nodes, n)
		if !n.Is("Gather") || n.Inputs[0] != table {
			continue
		}
		found := n.Outputs[0]
		rows := r.name(found, "int8")
		n.Inputs[0], n.Outputs[0] = bits, rows
		nodes = append(nodes, &onnx.Node{Name: r.name(found, "dequantize"), Op: "DequantizeLinear", Inputs: []string{rows, scale}, Outputs: []string{found}})
	}
	r.Graph.Nodes = nodes
}
